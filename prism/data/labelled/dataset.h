// A folder of labelled examples as tokens: train.safetensors, valid.safetensors, test.safetensors, data.json,
// tokenizer.json. `prism tokenize --label` writes it.
//
//   LabelledDataset data("data/snli", "train");
//   std::span<const int32_t> tokens = data.tokens(i);   int32_t label = data.label(i);
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prism/formats/safetensors.h"

namespace prism {

/// Names of the tensors of a split's file: int32 [tokens], int64 [examples + 1], int32 [examples].
constexpr const char *kTokensName = "tokens", *kOffsetsName = "offsets", *kLabelsName = "labels";

/// What labels mean and how texts were read. Stored with the data, and with a classifier trained on them.
struct LabelScheme {
  std::vector<std::string> classes, text_fields;
  bool words = false;
  template <class Visitor>
  void visit(Visitor& v) {
    v("classes", classes, "names of the classes, in the order of the labels 0, 1, ...");
    v("text_fields", text_fields, "columns that the texts were read from");
    v("words", words, "texts are in lower case, with punctuation apart");
  }
};

/// @param file  in which the scheme was found. @throws InputError for empty names or a name given twice.
void check(const LabelScheme& scheme, const std::filesystem::path& file);

/// The contents of `data.json` in a folder of labelled examples.
struct LabelledInfo {
  int64_t prism_format = 1;
  int64_t vocab_size = 0;
  int64_t end_of_text = -1;
  std::string tokenizer_fingerprint;
  LabelScheme scheme;  ///< its fields appear among these
  int64_t train_examples = 0, valid_examples = 0, test_examples = 0;
  int64_t train_tokens = 0, valid_tokens = 0, test_tokens = 0;
  int64_t dropped_examples = 0, shared_examples = 0, seed = 1;
  double valid_share = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("prism_format", prism_format, "version of this file's format");
    v("vocab_size", vocab_size, "number of token ids of the tokenizer");
    v("end_of_text", end_of_text, "id of the token that opens every text and stands between its fields, -1 if none");
    v("tokenizer_fingerprint", tokenizer_fingerprint, "hash of the tokenizer, hexadecimal");
    scheme.visit(v);
    v("train_examples", train_examples, "examples to train on");
    v("valid_examples", valid_examples, "examples for validation");
    v("test_examples", test_examples, "examples for the test");
    v("train_tokens", train_tokens, "tokens to train on");
    v("valid_tokens", valid_tokens, "tokens for validation");
    v("test_tokens", test_tokens, "tokens for the test");
    v("dropped_examples", dropped_examples,
      "training examples left out because their text is also in the test or validation files");
    v("shared_examples", shared_examples, "validation examples whose text is also in the test files");
    v("seed", seed, "seed that chose the validation examples");
    v("valid_share", valid_share, "share of the training examples drawn for validation; 0 if files were given");
  }
};

/// The file of a split.
std::filesystem::path labelled_file(const std::filesystem::path& folder, const std::string& split);

/// The contents of a folder's data.json. @throws InputError if it does not describe labelled examples.
LabelledInfo read_labelled_info(const std::filesystem::path& folder);

/// Returns true if the folder's data.json can be read and describes labelled examples.
bool is_labelled(const std::filesystem::path& folder);

/// The examples of one split, in memory.
class LabelledDataset {
 public:
  /// @throws InputError if the folder holds no labelled examples or none of this split, or if a file is damaged:
  ///         offsets that fall or do not span the tokens, labels that are no class, tokens outside the vocabulary, a
  ///         count that differs from data.json.
  LabelledDataset(const std::filesystem::path& folder, const std::string& split);

  int64_t size() const { return static_cast<int64_t>(labels_.size()); }
  std::span<const int32_t> tokens(int64_t i) const {
    const auto first = static_cast<size_t>(offsets_[static_cast<size_t>(i)]);
    return std::span(tokens_).subspan(first, static_cast<size_t>(offsets_[static_cast<size_t>(i) + 1]) - first);
  }
  int32_t label(int64_t i) const { return labels_[static_cast<size_t>(i)]; }
  const LabelledInfo& info() const { return info_; }
  const std::filesystem::path& folder() const { return folder_; }
  /// Hash of all tokens, offsets, labels and names of classes.
  uint64_t fingerprint() const;

 private:
  std::filesystem::path folder_;
  LabelledInfo info_;
  std::vector<int32_t> tokens_, labels_;
  std::vector<int64_t> offsets_;
};

}  // namespace prism
