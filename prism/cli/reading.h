// What a model reads while an analysis looks at it: a text, or windows of token shards.
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
#include <vector>

#include "prism/cli/compute_options.h"
#include "prism/models/batch.h"

namespace prism {

struct ReadingWords {
  std::string model, file, text, data, invalid_utf8 = "error";
  std::optional<std::string> split;   ///< absent: valid
  std::optional<int64_t> sequences;   ///< absent: 16
  std::optional<bool> document_mask;  ///< absent: as the run was trained
  int64_t tokens = 0;
  ComputeOptions compute;
};

/// Tokens that go through a model together: enough to fill the matrix products.
constexpr int64_t kReadingBatchTokens = 4096;

/// --document-mask and --no-document-mask; neither leaves `document_mask` absent.
void add_document_mask_option(CLI::App& app, std::optional<bool>& document_mask);
void add_invalid_utf8_option(CLI::App& app, std::string& invalid_utf8);

/// @param with_data  whether shards may be read too, not a text alone.
void add_reading_options(CLI::App& app, ReadingWords& words, bool with_data = true);

/// The shards' tokenizer must be the model's. @param model, fingerprint  its name and tokenizer.
/// @throws InputError if the shards are known to come from another.
void check_tokenizer(const TokenDataset& data, const std::string& model, const std::string& fingerprint);

/// A model and what it reads.
class Reading {
 public:
  /// Starts the process' threads and device, and reads model, tokenizer and text.
  /// @throws InputError for no text or more than one, an empty one, one on the command line that is longer than the
  ///         model's context or no UTF-8, --tokens beyond it, options of shards beside a text, and a model whose
  ///         forward pass over the first tokens is not finite; as load_model() and WindowLoader.
  explicit Reading(const ReadingWords& words);

  Decoder& model() { return model_.decoder; }
  const Tokenizer& tokenizer() const { return *model_.tokenizer; }
  const ModelConfig& config() { return model_.decoder->config(); }
  /// What was read, in words: "data/novels (valid), 16 sequences of 256 tokens".
  std::string description() const;

  /// Calls `run` with all of it, batch by batch. Windows of shards have their labels; a text's
  /// labels are its own next tokens, its last token left out, where `labelled`.
  /// @throws FailedError when stopped by a signal.
  void show(const std::function<void(BatchTensors&)>& run, bool labelled = false);

  /// The model reads all of it while the probe looks on. @throws FailedError as show().
  void show_to(Probe& probe);

 private:
  void read_text(const ReadingWords& words);
  void open_data(const ReadingWords& words);
  void check_finite();
  Batch text_batch() const;

  std::string source_;  ///< in words
  ModelFolder model_;
  int64_t tokens_ = 0, sequences_ = 1;
  std::vector<int64_t> ids_;  ///< of a text
  std::unique_ptr<TokenDataset> data_;
  std::optional<WindowLoader> windows_;
};

/// Layers or heads named by a list such as "0,3-5"; without one: all.
/// @param what  "--layers". @throws InputError for another form and numbers that are not below `count`.
std::vector<int64_t> parse_numbers(const std::optional<std::string>& list, int64_t count, const std::string& what);

}  // namespace prism
