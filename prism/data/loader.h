// Batches of shuffled windows from any number of memory-mapped token shards. The position can be saved and restored
// exactly.
//
//   TokenDataset data("data/novels", "train");                  // the shards of one split, in the order of their names
//   WindowLoader loader(data, {.context = 1024, .rows = 8, .seed = 1, .document_mask = false});
//   Batch batch = loader.next();                                // and loader.position() / seek() for checkpoints
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prism/formats/token_marks.h"
#include "prism/formats/token_shard.h"

namespace prism {

/// File names in a dataset's folder: its description, its tokenizer, and a folder that marks the dataset as incomplete.
/// The last exists only while finished files are moved to their places.
constexpr const char* kDatasetInfoName = "data.json";
constexpr const char* kTokenizerName = "tokenizer.json";
constexpr const char* kUnfinishedName = ".unfinished";

/// The contents of `data.json`, which `prism tokenize` writes beside the shards.
struct DatasetInfo {
  int64_t prism_format = 1;
  int64_t vocab_size = 0;
  int64_t end_of_text = -1;           ///< id of the token that opens every document, -1 if none
  std::string tokenizer_fingerprint;  ///< hexadecimal
  int64_t train_tokens = 0, train_documents = 0, train_bytes = 0;
  int64_t valid_tokens = 0, valid_documents = 0, valid_bytes = 0;
  /// Of conversations, whose shards have marks (token_marks.h): the tokens of the assistant. std::nullopt for texts.
  std::optional<int64_t> train_assistant_tokens = {}, valid_assistant_tokens = {};
  bool has_marks() const { return train_assistant_tokens.has_value(); }
  template <class Visitor>
  void visit(Visitor& v) {
    v("prism_format", prism_format, "version of this file's format");
    v("vocab_size", vocab_size, "number of token ids of the tokenizer");
    v("end_of_text", end_of_text, "id of the token that opens every document, -1 if none");
    v("tokenizer_fingerprint", tokenizer_fingerprint, "hash of the tokenizer, hexadecimal");
    v("train_tokens", train_tokens, "tokens in the training shards");
    v("train_documents", train_documents, "documents in the training shards");
    v("train_bytes", train_bytes, "bytes of text in the training shards");
    v("valid_tokens", valid_tokens, "tokens in the validation shards");
    v("valid_documents", valid_documents, "documents in the validation shards");
    v("valid_bytes", valid_bytes, "bytes of text in the validation shards");
    v("train_assistant_tokens", train_assistant_tokens, "tokens of the assistant in the training shards");
    v("valid_assistant_tokens", valid_assistant_tokens, "tokens of the assistant in the validation shards");
  }
};

/// Checks the numbers that data.json has for shards and for labelled examples alike. @param file  for messages.
/// @throws InputError for a vocabulary without the opening token (-1: there is none), or a count below 0.
void check_numbers(const std::filesystem::path& file, int64_t vocab_size, int64_t end_of_text,
                   std::initializer_list<int64_t> counts);

/// Reads data.json from a folder of shards. std::nullopt if `prism tokenize` did not make the shards and there is none.
/// @throws InputError if it is damaged.
std::optional<DatasetInfo> read_dataset_info(const std::filesystem::path& folder);

/// The shards of one split in `folder`, sorted by name: `<split>_*.bin`. The split may be any word of the name, and
/// `val` counts as `valid`, so that `fineweb_val_000000.bin` belongs to it.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder, const std::string& split);

/// The shards of one split as one long sequence of tokens.
class TokenDataset {
 public:
  /// @param folder  contains the shards that find_shards() lists and, unless they come from elsewhere, `data.json`.
  /// @throws InputError if there is no shard, a shard is incomplete, data.json contradicts the shards, marks are
  ///         missing or of another number, or `prism tokenize` was killed while it moved files to their places.
  TokenDataset(const std::filesystem::path& folder, const std::string& split);

  int64_t size() const { return starts_.back(); }
  /// Copies tokens [first, first + out.size()) of the sequence.
  /// @throws InputError for a token outside the vocabulary, InternalError for a range outside the sequence.
  void read(int64_t first, std::span<int64_t> out) const;
  /// Whether the tokens have marks: the shards hold conversations.
  bool has_marks() const { return !marks_.empty(); }
  /// Copies the marks of tokens [first, first + out.size()). Only if has_marks().
  void read_marks(int64_t first, std::span<uint8_t> out) const;
  /// The number of tokens before `first` that belong to the word which the token at `first` may continue: back to the
  /// last token that starts a word, that one included. @param starts  as in WindowOptions.
  int64_t word_opening(int64_t first, const std::vector<uint8_t>& starts) const;
  /// Hash of the size and of 64 evenly spaced stretches of tokens and their marks. It detects other data without
  /// reading all of it.
  uint64_t fingerprint() const;
  /// std::nullopt for shards that `prism tokenize` did not make.
  const std::optional<DatasetInfo>& info() const { return info_; }
  /// Fingerprint of the tokenizer that made the shards; "unknown" if `prism tokenize` did not make them.
  std::string tokenizer() const { return info_ ? info_->tokenizer_fingerprint : "unknown"; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  void open_marks();
  /// Calls use(shard, begin, end) for each part of [first, first + count) that lies in one shard.
  template <class Use>
  void visit_shards(int64_t first, int64_t count, const Use& use) const;

  std::filesystem::path folder_;
  std::vector<TokenShard> shards_;
  std::vector<TokenMarks> marks_;  ///< of each shard; empty: none
  std::vector<int64_t> starts_;    ///< first token of each shard, then the total
  std::optional<DatasetInfo> info_;
};

/// B rows of T tokens, row-major. `labels` are the tokens shifted by one: labels[i] follows tokens[i]. In
/// conversations, only tokens of the assistant are labels; -1 takes the place of others.
struct Batch {
  int64_t rows = 0, context = 0;
  std::vector<int64_t> tokens, labels;  ///< [B*T]
  std::vector<int32_t> documents;  ///< [B*T] 0, 1, ... within a row, plus 1 where a document begins; empty: no mask
  std::vector<int64_t> word_openings = {};  ///< [B] TokenDataset::word_opening() of each row; empty: not looked up
};

struct WindowOptions {
  int64_t context = 1024, rows = 8, seed = 1;
  bool document_mask = false;             ///< fill Batch::documents
  int64_t stride = 0;                     ///< tokens between the starts of adjacent windows; 0 means context
  std::vector<uint8_t> word_starts = {};  ///< Tokenizer::word_starts(); if not empty, fill Batch::word_openings
  bool shuffle = true;  ///< false: windows in order, once (evaluation); the last batch has fewer rows, then 0
};

/// One dataset of a mixture; `data` must outlive the loaders.
struct WeightedData {
  const TokenDataset* data = nullptr;
  double weight = 1;  ///< share of the windows, whatever the size of the data; weights need not sum to 1
};

/// Windows of context + 1 tokens at multiples of the stride. If the stride is the context, every token but the first is
/// a label once per epoch. Each epoch is a seeded permutation of the windows, whatever the batch size. The window at
/// position n depends only on (data, options, n). Tokens after the last complete window are not used. Keeps a reference
/// to `data`, which must outlive it.
///
/// In a mixture, every cycle of kCycle windows contains each part in proportion to its weight, in a seeded order. Each
/// part has its own epochs.
class WindowLoader {
 public:
  static constexpr int64_t kCycle = 4096;

  /// @param end_of_text  id that opens a document, for the mask; -1 if none. In data with marks, these say it.
  /// @throws InputError if the data is shorter than one window, or if document_mask is set for data without marks and
  ///         end_of_text is -1.
  WindowLoader(const TokenDataset& data, WindowOptions options, int64_t end_of_text);
  /// @throws InputError also for an empty mixture, and for weights that are not positive or below 1 / kCycle of their
  ///         sum.
  WindowLoader(const std::vector<WeightedData>& mixture, WindowOptions options, int64_t end_of_text);

  Batch next();
  /// Number of windows returned so far, over all epochs.
  int64_t position() const { return position_; }
  /// Continues from a saved position(). @throws InputError if it is negative.
  void seek(int64_t position);
  /// Total over all parts.
  int64_t windows_per_epoch() const;

 private:
  struct Part {
    const TokenDataset* data;
    int64_t windows;
    int64_t slots;  ///< windows per cycle
  };
  struct Place {
    size_t part;
    int64_t window;
  };
  /// The windows of one cycle: for each, its part and how many windows of that part precede it in the cycle.
  struct Cycle {
    int64_t number = -1;
    std::vector<Place> places;
  };

  Place place_of(int64_t n);
  /// Adds the row of a window: its tokens, labels and documents.
  void add_row(Batch& batch, const TokenDataset& data, int64_t first) const;
  void lay_out_cycle(int64_t number);

  std::vector<Part> parts_;
  Cycle cycle_;
  WindowOptions options_;
  int64_t end_of_text_, position_ = 0;
};

}  // namespace prism
