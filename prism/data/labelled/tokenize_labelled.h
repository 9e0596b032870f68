// Converts labelled texts to a folder of tokens and labels. This is what `prism tokenize --label` does.
//
//   const auto summary = tokenize_labelled({{"train.jsonl"}, {}, {"test.jsonl"}}, tokenizer, "data/snli", options);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "prism/data/labelled/dataset.h"
#include "prism/data/labelled/examples.h"
#include "prism/data/tokenize.h"

namespace prism {

/// The files of each split.
struct LabelledFiles {
  std::vector<std::string> train, valid, test;
};

struct LabelledOptions {
  ExampleOptions examples = {};
  std::vector<std::string> classes = {};  ///< names in order; empty: from the labels (classes.h)
  double valid_share = 0.01;              ///< without files for validation, share of the training examples
  int64_t seed = 1;                       ///< chooses the training examples for validation
  int threads = 0;                        ///< encoding threads; 0: all cores that this process may use
  bool force = false;                     ///< replace an existing dataset
};

/// The tokens of an example: those of each text, with the opening token before it if the tokenizer has one. Special
/// tokens spelled in a text stay text.
std::vector<int32_t> encode_texts(const std::vector<std::string>& texts, const Tokenizer& tokenizer);

/// Writes `<out>/{train,valid,test}.safetensors`, `data.json` and `tokenizer.json` (dataset.h).
///
/// encode_texts() makes the tokens. Training examples whose text is also in the test or validation files are left out
/// and counted. Without files for validation, each training text goes to validation with probability valid_share, by a
/// hash of (seed, text), so that all copies of a text are on one side. A split without examples has no file.
///
/// @param on_progress  if given, called from the calling thread after every portion.
/// @throws InputError for bad rows (examples.h) or labels (classes.h), files without examples, splits whose columns
///         differ, an `out` with a dataset but no force, or options out of range; FailedError if the disk is full,
///         another process works in `out`, or SIGINT or SIGTERM arrives (core/stop.h). `out` is then unchanged.
LabelledInfo tokenize_labelled(const LabelledFiles& files, const Tokenizer& tokenizer, const std::filesystem::path& out,
                               const LabelledOptions& options,
                               const std::function<void(const TokenizeProgress&)>& on_progress = {});

}  // namespace prism
