#include "prism/evaluation/ruler/prompts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>

#include "prism/core/error.h"
#include "prism/evaluation/tasks/row_values.h"

namespace prism {
namespace {

std::string letters(Random& random, int64_t count, char first) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += static_cast<char>(first + static_cast<char>(random.below(26)));
  return text;
}

/// "1. first 2. second ..."
std::string numbered(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += fmt::format("{}{}. {}", i == 0 ? "" : " ", i + 1, words[i]);
  return text;
}

struct Assignments {
  std::vector<std::string> variables, lines;
  std::string value;
};

/// One variable with a value, and `hops` more, each of which gets that of the one before.
Assignments assignments(Random& random, int64_t hops, int64_t letters_of_name) {
  Assignments made;
  std::set<std::string> names;
  while (std::ssize(made.variables) <= hops)
    if (auto name = letters(random, letters_of_name, 'A'); names.insert(name).second) made.variables.push_back(name);
  made.value = std::to_string(10000 + random.below(89999));
  made.lines.push_back(fmt::format("VAR {} = {}", made.variables[0], made.value));
  for (size_t i = 1; i < made.variables.size(); ++i)
    made.lines.push_back(fmt::format("VAR {} = VAR {} ", made.variables[i], made.variables[i - 1]));
  return made;
}

struct VariableQuestion {
  std::string text, prefix;
  std::vector<std::string> variables;
};

VariableQuestion variable_question(Random& random, int64_t letters_of_name, int64_t noise_lines) {
  constexpr int64_t kHops = 4;
  const auto made = assignments(random, kHops, letters_of_name);
  std::vector<std::string> lines(static_cast<size_t>(noise_lines), kNoiseLine);
  auto places = draw_distinct(random, std::ssize(made.lines), noise_lines);
  std::ranges::sort(places);
  for (size_t i = 0; i < places.size(); ++i)
    lines.insert(lines.begin() + places[i] + static_cast<std::ptrdiff_t>(i), made.lines[i]);
  const std::vector<std::pair<std::string, std::string>> values = {
      {"context", fmt::format("{}", fmt::join(lines, "\n"))},
      {"query", made.value},
      {"num_v", std::to_string(kHops + 1)}};
  return {filled("Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n{context}\n"
                 "Question: Find all variables that are assigned the value {query} in the text above.",
                 values),
          filled(" Answer: According to the chain(s) of variable assignment in the text above, {num_v} variables are "
                 "assigned the value {query}, they are: ",
                 values),
          made.variables};
}

struct WordList {
  std::string text;
  std::vector<std::string> common;
};

/// A shuffled list in which ten of `count` distinct words stand more often than the others.
WordList word_list(const std::vector<std::string>& pool, Random& random, int64_t count, int64_t often, int64_t seldom) {
  constexpr size_t kCommon = 10;
  const auto drawn = draw_distinct(random, count, std::ssize(pool));
  WordList made;
  std::vector<std::string> words;
  for (size_t i = 0; i < drawn.size(); ++i) {
    const auto& word = pool[static_cast<size_t>(drawn[i])];
    if (i < kCommon) made.common.push_back(word);
    words.insert(words.end(), static_cast<size_t>(i < kCommon ? often : seldom), word);
  }
  shuffle(words, random);
  made.text = fmt::format(
      "Below is a numbered list of words. In these words, some appear more often than others. "
      "Memorize the ones that appear most often.\n{}\nQuestion: What are the 10 most common words "
      "in the above list?",
      numbered(words));
  return made;
}

}  // namespace

std::vector<int64_t> draw_distinct(Random& random, int64_t count, int64_t bound) {
  PRISM_ASSERT(count <= bound, "ruler", "{} of {}", count, bound);
  // Floyd's algorithm, and a shuffle.
  std::set<int64_t> taken;
  std::vector<int64_t> drawn;
  for (int64_t i = bound - count; i < bound; ++i) {
    const auto each = static_cast<int64_t>(random.below(static_cast<uint64_t>(i) + 1));
    drawn.push_back(taken.insert(each).second ? each : i);
    taken.insert(drawn.back());
  }
  shuffle(drawn, random);
  return drawn;
}

std::string filled(std::string text, const std::vector<std::pair<std::string, std::string>>& values) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const auto found = std::ranges::find_if(values, [&](const auto& each) {
      return text[at] == '{' && text.compare(at + 1, each.first.size() + 1, each.first + "}") == 0;
    });
    if (found == values.end()) {
      made += text[at++];
    } else {
      made += found->second;
      at += found->first.size() + 2;
    }
  }
  return made;
}

std::vector<std::string> sentences_of(const std::vector<std::string>& words, int64_t count) {
  std::vector<std::string> sentences;
  std::string sentence;
  for (int64_t i = 0; i < count; ++i) {
    const auto& word = words[static_cast<size_t>(i) % words.size()];
    if (!sentence.empty()) sentence += ' ';
    sentence += word;
    const auto last = word.find_last_not_of("\"')]}");
    if (last != std::string::npos && std::string_view(".!?").find(word[last]) != std::string_view::npos)
      sentences.push_back(std::exchange(sentence, ""));
  }
  if (!sentence.empty()) sentences.push_back(sentence);
  return sentences;
}

RulerPrompt variable_prompt(const RulerSetting& setting, Random& random, int64_t units) {
  // The example has some 500 tokens: the most lines of noise that fit, for any names and values.
  int64_t lines = 5;
  while (true) {
    Random same(setting.sample);
    const auto more = variable_question(same, 3, lines + 1);
    if (setting.count_tokens(more.text + more.prefix) > 500) break;
    ++lines;
  }
  const auto example = variable_question(random, 3, lines), asked = variable_question(random, 5, units);
  return {fmt::format("{}{} {}\n\n{}", example.text, example.prefix, fmt::join(example.variables, " "), asked.text),
          asked.prefix, asked.variables};
}

RulerPrompt common_words_prompt(const RulerSetting& setting, Random& random, int64_t units) {
  const auto& pool = setting.sources.common_words();
  const bool is_short = setting.length < 4096;
  const auto example = is_short ? word_list(pool, random, 20, 3, 1) : word_list(pool, random, 40, 10, 3),
             asked = is_short ? word_list(pool, random, units, 6, 1) : word_list(pool, random, units, 30, 3);
  const std::string prefix = " Answer: The top 10 words that appear most often in the list are:";
  return {fmt::format("{}{} {}\n{}", example.text, prefix, numbered(example.common), asked.text), prefix, asked.common};
}

RulerPrompt frequent_words_prompt(const RulerSetting& setting, Random& random, int64_t units) {
  const int64_t vocabulary = std::max<int64_t>(4, (setting.length - setting.new_tokens) / 50);
  std::vector<std::string> words;
  std::set<std::string> taken;
  while (std::ssize(words) < vocabulary)
    if (auto word = letters(random, 6, 'a'); taken.insert(word).second) words.push_back(word);
  words[0] = "...";                                                  // the most frequent is noise
  constexpr double kZeta = std::numbers::pi * std::numbers::pi / 6;  // of 2
  std::vector<std::string> all;
  for (size_t i = 0; i < words.size(); ++i) {
    const auto rank = static_cast<double>(i + 1);
    const auto count = static_cast<size_t>(static_cast<double>(units) / (rank * rank * kZeta));
    all.insert(all.end(), count, words[i]);
  }
  shuffle(all, random);
  return {
      fmt::format("Read the following coded text and track the frequency of each coded word. Find the three most "
                  "frequently appeared coded words. {}\nQuestion: Do not provide any explanation. Please ignore the "
                  "dots '....'. What are the three most frequently appeared words in the above coded text?",
                  fmt::join(all, " ")),
      " Answer: According to the coded text above, the three most frequently appeared words are:",
      {words[1], words[2], words[3]}};
}

RulerPrompt document_prompt(const RulerQuestions& all, const RulerSetting& setting, Random& random, int64_t units) {
  PRISM_CHECK(setting.sample < std::ssize(all.questions), kEvaluation,
              "expected a question for each sample; found {} in the file; lower --samples to that.",
              all.questions.size());
  const auto& asked = all.questions[static_cast<size_t>(setting.sample)];
  auto chosen = asked.documents;
  std::set<size_t> taken(chosen.begin(), chosen.end());
  auto related = asked.related;
  shuffle(related, random);
  for (const size_t each : related)
    if (std::ssize(chosen) < units && taken.insert(each).second) chosen.push_back(each);
  std::vector<size_t> others;
  for (size_t i = 0; i < all.documents.size(); ++i)
    if (!taken.contains(i)) others.push_back(i);
  const int64_t missing = std::clamp<int64_t>(units - std::ssize(chosen), 0, std::ssize(others));
  for (const int64_t each : draw_distinct(random, missing, std::ssize(others)))
    chosen.push_back(others[static_cast<size_t>(each)]);
  // Where there are too few, they are repeated.
  for (size_t i = 0; std::ssize(chosen) < units; ++i) chosen.push_back(chosen[i]);
  shuffle(chosen, random);
  std::string context;
  for (size_t i = 0; i < chosen.size(); ++i)
    context += fmt::format("{}Document {}:\n{}", i == 0 ? "" : "\n\n", i + 1, all.documents[chosen[i]]);
  constexpr const char* kTask =
      "Answer the question based on the given documents. Only give me the answer and do not "
      "output any other words.";
  return {fmt::format("{}\n\nThe following are given documents.\n\n{}\n\n{}\n\nQuestion: {}", kTask, context, kTask,
                      asked.query),
          " Answer:", asked.answers};
}

}  // namespace prism
