// The input that a model reads during an analysis: a text, windows of token shards, or, for classifiers, labelled
// examples.
//
//   ReadingWords words;
//   add_reading_options(app, words);            // MODEL [FILE] --text --data --split --tokens --sequences, and compute
//   Reading reading(words);
//   reading.show_to(probe);
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/cli/options/compute_options.h"
#include "prism/models/batch.h"

namespace prism {

struct ReadingWords {
  std::string model, file, data, invalid_utf8 = "error";
  std::vector<std::string> texts;     ///< the text of --text; for classifiers, its fields
  std::optional<std::string> split;   ///< std::nullopt: valid
  std::optional<int64_t> sequences;   ///< std::nullopt: 16
  std::optional<bool> document_mask;  ///< std::nullopt: as the run was trained
  int64_t tokens = 0;
  bool takes_data = true;  ///< whether the command has --data, for messages
  ComputeOptions compute;
};

/// Tokens per forward pass: enough for efficient matrix products.
constexpr int64_t kReadingBatchTokens = 4096;

/// Adds --document-mask and --no-document-mask. Without either, `document_mask` stays std::nullopt.
void add_document_mask_option(CLI::App& app, std::optional<bool>& document_mask);
void add_invalid_utf8_option(CLI::App& app, std::string& invalid_utf8);

/// @param with_data     also add the options for token shards.
/// @param with_weights  also add --weights, by whose default losses cannot be computed.
void add_reading_options(CLI::App& app, ReadingWords& words, bool with_data = true, bool with_weights = true);

/// Checks that the shards were made with the model's tokenizer.
/// @param model        the model's name, for messages.
/// @param fingerprint  of the model's tokenizer.
/// @throws InputError if the shards are known to come from another tokenizer.
void check_tokenizer(const TokenDataset& data, const std::string& model, const std::string& fingerprint);

/// Opens the shards of a language model. @throws InputError for a split other than valid and train that has no shards;
/// also as TokenDataset.
std::unique_ptr<TokenDataset> open_shards(const std::string& folder, const std::string& split);

/// Describes shards, e.g. "data/novels (valid), attention within documents".
std::string describe_shards(const std::string& folder, const std::string& split, bool document_mask);

/// Describes an input, e.g. "data/novels (valid), 16 sequences of 256 tokens".
std::string describe_reading(const std::string& source, int64_t sequences, int64_t tokens);

/// Describes labelled examples, e.g. "data/snli (test), 16 examples".
std::string describe_examples(const std::string& folder, const std::string& split, int64_t examples);

/// One forward pass over the input.
struct Pass {
  torch::Tensor tokens_BT, labels;  ///< labels: [B, T] of language models, [B] of classifiers; undefined if unknown
  ForwardContext context;
};

/// A model and its input.
class Reading {
 public:
  /// Sets up threads and device, and loads the model, its tokenizer and the text.
  /// @throws InputError if there is no text or more than one, the text is empty, --text is not UTF-8 or longer than the
  ///         model's context, --tokens exceeds the context, options for shards are combined with a text, or the model's
  ///         forward pass over the first tokens is not finite; also as load_model() and WindowLoader.
  explicit Reading(const ReadingWords& words);

  /// The language model or classifier.
  Trunk& model() const;
  const Tokenizer& tokenizer() const { return classifier_ ? *classifier_->tokenizer : *language_model_->tokenizer; }
  const ModelConfig& config() const { return model().config(); }
  /// See describe_reading().
  std::string description() const;

  /// Calls `run` for each batch of the input. Head budgets read the first half of each row, whose tokens are not
  /// predicted. Windows of shards have labels. If `labelled`, the labels of a text are its next tokens, and its last
  /// token is not an input.
  /// @throws FailedError when stopped by a signal.
  void show(const std::function<void(Pass&)>& run, bool labelled = false);

  /// Runs the model on all of the input with the probe attached. @throws FailedError as show().
  void show_to(Probe& probe);

  /// The logits of the hidden states of a pass, float32 on the CPU.
  torch::Tensor logits(const Pass& pass, const torch::Tensor& hidden_BTD) const;
  /// Whether the input tells what is to be predicted: all but a classifier's --text.
  bool has_labels() const { return !classifier_ || examples_ != nullptr; }
  /// The mean loss of a pass with labels, and the number of labels that it is the mean of. Differentiable.
  std::pair<torch::Tensor, int64_t> loss(Pass& pass) const;

 private:
  void open_language_model(const ReadingWords& words);
  void open_classifier(const ReadingWords& words);
  void read_text(const ReadingWords& words);
  void open_data(const ReadingWords& words);
  void check_finite();
  Batch text_batch() const;
  void show_text(const std::function<void(Pass&)>& run, bool labelled) const;
  void show_examples(const std::function<void(Pass&)>& run, bool labelled);
  void show_windows(const std::function<void(Pass&)>& run);
  /// The pass of a batch of a language model.
  Pass pass_of(Batch& batch) const;

  std::string source_, split_;  ///< for description(); the split of labelled examples
  std::optional<ModelFolder> language_model_;
  std::optional<ClassifierFolder> classifier_;  ///< one of both
  int64_t tokens_ = 0, sequences_ = 1;
  std::vector<int64_t> ids_;  ///< tokens of a text
  std::unique_ptr<TokenDataset> data_;
  std::optional<WindowLoader> windows_;
  std::unique_ptr<LabelledDataset> examples_;
};

/// Parses a list of layers or heads such as "0,3-5". Without a list, returns all `count` numbers.
/// @param what  the option's name for messages, e.g. "--layers".
/// @throws InputError for a list of another form, or a number that is not below `count`.
std::vector<int64_t> parse_numbers(const std::optional<std::string>& list, int64_t count, const std::string& what);

}  // namespace prism
