// Converts text files to a folder of token shards with a description. This is what `prism tokenize` does.
//
//   const auto tokenizer = Tokenizer::load("tokenizers/gpt2");
//   TokenizeSummary summary = tokenize({"train.txt.xz"}, {"valid.txt.xz"}, tokenizer, "data/novels", options);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "prism/data/loader.h"
#include "prism/data/text_source.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct TokenizeOptions {
  TextOptions text;
  double valid_share = 0.01;
  int64_t shard_tokens = 100'000'000, seed = 1;
  int threads = 0;  ///< encoding threads; 0 means all cores that this process may use
  bool force = false;
  template <class Visitor>
  void visit(Visitor& v) {
    v("text", text, "how the files are read");
    v("valid_share", valid_share,
      "share of the documents or labelled texts used for validation, from 0 (none) to below 1");
    v("shard_tokens", shard_tokens, "tokens per shard, at most 2147483647; may end in k or M");
    v("seed", seed, "seed that chooses the documents or texts for validation");
    v("force", force, "replace an existing dataset");
  }
};

struct TokenizeProgress {
  int64_t bytes_read = 0;   ///< of the files on disk
  int64_t bytes_total = 0;  ///< 0 if standard input is read
  int64_t documents = 0, tokens = 0;
};

struct TokenizeSummary {
  DatasetInfo info;
  int64_t train_shards = 0, valid_shards = 0;
  int64_t empty_documents = 0;  ///< skipped: files and rows without text
  int64_t skipped_files = 0;    ///< files in folders skipped, as list_text_files()
};

/// The tokens of a document, or of a piece of one.
struct EncodedText {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> marks = {};  ///< of each token (token_marks.h); empty unless the encoder marks
  int64_t bytes = 0;                ///< of the text
};

/// How the rows of files become tokens.
struct DocumentEncoder {
  std::function<EncodedText(const Document&)> encode;  ///< called by several threads at once
  bool marks = false;  ///< encode() gives marks, and all tokens: no opening token is put before a document
};

/// Writes `<out>/{train,valid}_000000.bin, ...`, `data.json` and `tokenizer.json`.
///
/// Every document begins with the opening token (if the tokenizer has one). Documents keep the order of the files.
/// Special tokens spelled in a text stay text. Of the documents of `inputs`, the second goes to validation, and each
/// later one with probability valid_share, by a hash of (seed, document number). So two documents are enough for a
/// validation set, and the first document always goes to training. The files are the same for every number of threads.
/// Memory is bounded (about 4 * threads * (piece + its tokens)).
///
/// @param valid_inputs  if not empty, these are the validation texts and valid_share is ignored. A file in both lists
///                      (a folder's validation file) is read for validation only.
/// @param on_progress   if given, called from the calling thread after every portion.
/// @throws InputError for bad text (text_source.h), no text or no tokens at all, an `out` with a dataset but no force,
///         or options out of range; FailedError if the disk is full, another process works in `out`, or SIGINT or
///         SIGTERM arrives (core/stop.h). `out` is then unchanged.
TokenizeSummary tokenize(const std::vector<std::string>& inputs, const std::vector<std::string>& valid_inputs,
                         const Tokenizer& tokenizer, const std::filesystem::path& out, const TokenizeOptions& options,
                         const std::function<void(const TokenizeProgress&)>& on_progress = {});

/// tokenize() with an encoder of its own. If it marks, `<out>/{train,valid}_000000.marks` are written, too.
TokenizeSummary tokenize_documents(const std::vector<std::string>& inputs, const std::vector<std::string>& valid_inputs,
                                   const Tokenizer& tokenizer, const DocumentEncoder& encoder,
                                   const std::filesystem::path& out, const TokenizeOptions& options,
                                   const std::function<void(const TokenizeProgress&)>& on_progress = {});

}  // namespace prism
