// RULER's prompts. Each consists of a number of units (words, lines or documents) around what is asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/core/random.h"
#include "prism/evaluation/ruler/sources.h"

namespace prism {

struct RulerPrompt {
  std::string text;                  ///< the question
  std::string prefix;                ///< the beginning of the answer, which follows it
  std::vector<std::string> targets;  ///< what the answer has to contain
};

/// What prompts depend on besides their units.
struct RulerSetting {
  RulerSources& sources;
  std::function<int64_t(std::string_view)> count_tokens;
  int64_t length = 0;      ///< tokens of prompt and answer
  int64_t new_tokens = 0;  ///< tokens of the answer
  int64_t sample = 0;      ///< number of the prompt
};

enum class Haystack { noise, essay, needles };

/// Sentences that hide values behind keys, in a haystack.
struct NeedleOptions {
  Haystack haystack = Haystack::noise;
  bool uuid_keys = false, uuid_values = false;  ///< else pairs of words, and numbers of seven digits
  int64_t keys = 1, values = 1, queries = 1;    ///< values: of each key; queries: keys that are asked for
};

/// @param units  lines of noise or needles, or words of essays.
RulerPrompt needle_prompt(const NeedleOptions& options, const RulerSetting& setting, Random& random, int64_t units);
/// A number behind a pair of words, in essays. @param depth_percent  of the sentences before it. @param units  words.
RulerPrompt needle_at(int64_t depth_percent, const RulerSetting& setting, Random& random, int64_t units);
/// Variables that get their value from one another, in noise, after a solved example. @param units  lines of noise.
RulerPrompt variable_prompt(const RulerSetting& setting, Random& random, int64_t units);
/// The ten words that a list repeats most often, after a solved example. @param units  distinct words.
RulerPrompt common_words_prompt(const RulerSetting& setting, Random& random, int64_t units);
/// The three most frequent words of a text of made words, whose frequencies fall with their rank. @param units  words.
RulerPrompt frequent_words_prompt(const RulerSetting& setting, Random& random, int64_t units);
/// A question about one of many documents. @param units  documents.
RulerPrompt document_prompt(const RulerQuestions& all, const RulerSetting& setting, Random& random, int64_t units);

constexpr const char* kNoiseLine =
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

/// `count` different numbers below `bound`, in random order. @param bound  at least count.
std::vector<int64_t> draw_distinct(Random& random, int64_t count, int64_t bound);

template <class Value>
void shuffle(std::vector<Value>& values, Random& random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

/// The text with each `{name}` replaced by its value.
std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values);

/// Sentences of a text: each ends with a word that ends in . ! or ?, closing quotes and brackets aside.
std::vector<std::string> sentences_of(const std::vector<std::string>& words, int64_t count);

}  // namespace prism
