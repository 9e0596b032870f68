// The texts that RULER's prompts are made of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace prism {

/// A question with documents of which one answers it.
struct RulerQuestion {
  std::string query;
  std::vector<std::string> answers;
  std::vector<size_t> documents;  ///< that hold the answer
  std::vector<size_t> related;    ///< of the same article, taken before others
};

struct RulerQuestions {
  std::vector<std::string> documents;
  std::vector<RulerQuestion> questions;
};

/// Files of a data folder; each may be packed (.gz, .xz, .zst). Each is read when it is first needed.
class RulerSources {
 public:
  /// @param words  a list of words, one a line; "": words.txt in the folder, else Debian's /usr/share/dict/words.
  RulerSources(std::string folder, std::string words);

  /// Essays as words: paul_graham_essays.jsonl or essays.txt, also in the folder long_context.
  /// @throws InputError if there is none.
  const std::vector<std::string>& essay_words();
  /// Distinct words of three to ten lower-case letters. @throws InputError if there are none.
  const std::vector<std::string>& common_words();
  /// SQuAD 2's dev-v2.0.json (or squad.json): questions that can be answered. @throws InputError if there is none.
  const RulerQuestions& squad();
  /// HotpotQA's hotpot_dev_distractor_v1.json (or hotpotqa.json). @throws InputError if there is none.
  const RulerQuestions& hotpot();

 private:
  std::string folder_, words_;
  std::vector<std::string> essay_words_, common_words_;
  RulerQuestions squad_, hotpot_;
};

}  // namespace prism
