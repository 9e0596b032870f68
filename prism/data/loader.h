// Batches of shuffled windows from token shards: memory-mapped, any number of shards, exact position saved and
// restored.
//
//   TokenDataset data("data/novels", "train");                  // the shards of one split, in the order of their names
//   WindowLoader loader(data, {.context = 1024, .rows = 8, .seed = 1, .document_mask = false});
//   Batch batch = loader.next();                                // and loader.position() / seek() for checkpoints
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "prism/formats/token_shard.h"

namespace prism {

/// Names inside a dataset's folder: what describes it, the tokenizer it was made with, and a folder whose presence
/// means that it is not whole (it exists while finished files are moved to their places).
constexpr const char* kDatasetInfoName = "data.json";
constexpr const char* kTokenizerName = "tokenizer.json";
constexpr const char* kUnfinishedName = ".unfinished";

/// What `prism tokenize` writes beside the shards, as `data.json`.
struct DatasetInfo {
  int64_t prism_format = 1;
  int64_t vocab_size = 0;
  int64_t end_of_text = -1;           ///< id of the token that opens every document; -1: none
  std::string tokenizer_fingerprint;  ///< hexadecimal
  int64_t train_tokens = 0, train_documents = 0, train_bytes = 0;
  int64_t valid_tokens = 0, valid_documents = 0, valid_bytes = 0;
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
  }
};

/// data.json of a folder of shards; nothing for shards from elsewhere. @throws InputError for a damaged one.
std::optional<DatasetInfo> read_dataset_info(const std::filesystem::path& folder);

/// The shards of one split in `folder`, sorted by name: `<split>_*.bin`. The split may be any word of the name, and
/// `val` stands for `valid`, so that `fineweb_val_000000.bin` is one.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& folder, const std::string& split);

/// The shards of one split as one long sequence of tokens.
class TokenDataset {
 public:
  /// @param folder  holds the shards that find_shards() names and, unless they come from elsewhere, `data.json`.
  /// @throws InputError if there is no shard, or one is not whole, or data.json contradicts them, or `prism tokenize`
  ///         was killed while it put the files in their places.
  TokenDataset(const std::filesystem::path& folder, const std::string& split);

  int64_t size() const { return starts_.back(); }
  /// Copies tokens [first, first + out.size()) of the sequence.
  /// @throws InputError for a token outside the vocabulary, InternalError for a range outside the sequence.
  void read(int64_t first, std::span<int64_t> out) const;
  /// Of the size and of 64 stretches of tokens, spread evenly: other data is noticed without reading all of it.
  uint64_t fingerprint() const;
  /// Absent for shards from elsewhere.
  const std::optional<DatasetInfo>& info() const { return info_; }
  /// Fingerprint of the tokenizer that made them; "unknown" for shards from elsewhere.
  std::string tokenizer() const { return info_ ? info_->tokenizer_fingerprint : "unknown"; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::vector<TokenShard> shards_;
  std::vector<int64_t> starts_;  ///< first token of each shard, and the total
  std::optional<DatasetInfo> info_;
};

/// B rows of T tokens, row-major; `labels` are the tokens one later.
struct Batch {
  int64_t rows = 0, context = 0;
  std::vector<int64_t> tokens, labels;  ///< [B*T]
  std::vector<int32_t> documents;       ///< [B*T] 0, 1, ... within a row, one more at every end-of-text; empty: no mask
};

struct WindowOptions {
  int64_t context = 1024, rows = 8, seed = 1;
  bool document_mask = false;  ///< fill Batch::documents
  int64_t stride = 0;          ///< tokens from the start of a window to that of the next; 0: context
  bool shuffle = true;         ///< off: windows in order, once (evaluation); the last batch has fewer rows, then 0
};

/// A part of a mixture, which must outlive its loaders.
struct WeightedData {
  const TokenDataset* data = nullptr;
  double weight = 1;  ///< of its windows among all, whatever their number: the weights need not sum to 1
};

/// Windows of context + 1 tokens at multiples of the stride; where that is the context, every token but the first is a
/// label once an epoch. Each epoch is a seeded permutation of them, whatever the batch. Position n is a function of
/// (data, options, n) alone. What is left behind the last whole window is left out. Refers to `data`, which must
/// outlive it.
///
/// Of a mixture, every kCycle windows in a row hold each part as often as its weight says, in a seeded order; each part
/// goes through epochs of its own.
class WindowLoader {
 public:
  static constexpr int64_t kCycle = 4096;

  /// @param end_of_text  id that opens a document, for the mask; -1: none.
  /// @throws InputError if the data is shorter than one window, or the mask is wanted and no id is known.
  WindowLoader(const TokenDataset& data, WindowOptions options, int64_t end_of_text);
  /// @throws InputError also for no part, and weights that are not positive or below 1 / kCycle of their sum.
  WindowLoader(const std::vector<WeightedData>& mixture, WindowOptions options, int64_t end_of_text);

  Batch next();
  /// Windows handed out so far, over all epochs.
  int64_t position() const { return position_; }
  /// Goes on from where position() was. @throws InputError for a negative one.
  void seek(int64_t position);
  /// Of all parts together.
  int64_t windows_per_epoch() const;

 private:
  struct Part {
    const TokenDataset* data;
    int64_t windows;
    int64_t slots;  ///< of each cycle
  };
  struct Place {
    size_t part;
    int64_t window;
  };
  /// The windows of one cycle: the part of each, and how many of that part come before it in the cycle.
  struct Cycle {
    int64_t number = -1;
    std::vector<Place> places;
  };

  Place place_of(int64_t n);
  void lay_out_cycle(int64_t number);

  std::vector<Part> parts_;
  Cycle cycle_;
  WindowOptions options_;
  int64_t end_of_text_, position_ = 0;
};

}  // namespace prism
