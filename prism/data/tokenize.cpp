#include "prism/data/tokenize.h"

#include <algorithm>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/machine.h"
#include "prism/core/random.h"
#include "prism/core/stop.h"
#include "prism/data/ordered_pipeline.h"
#include "prism/data/staged_folder.h"
#include "prism/formats/token_marks.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Short documents are encoded in portions of about this size, to make passing them between threads cheap.
constexpr size_t kPortionBytes = 1 << 18;

struct EncodedPiece {
  Document document;
  bool valid = false;
  EncodedText encoded;
};

struct Portion {
  std::vector<EncodedPiece> pieces;
  int64_t bytes_read = 0, empty_documents = 0;  ///< of the sources so far
};

void check_options(const std::vector<std::string>& inputs, const TokenizeOptions& options) {
  PRISM_CHECK(!inputs.empty(), "tokenize",
              "expected at least one file, folder or - (standard input); found none; name one.");
  PRISM_CHECK(options.valid_share >= 0 && options.valid_share < 1, "tokenize",
              "expected a validation share from 0 to below 1; found {}; change it.", options.valid_share);
  PRISM_CHECK(options.shard_tokens >= 1 && options.shard_tokens <= kMaxShardTokens, "tokenize",
              "expected 1 to {} tokens a shard; found {}; choose another size.", kMaxShardTokens, options.shard_tokens);
  PRISM_CHECK(options.threads >= 0, "tokenize",
              "expected 0 threads (all there are) or more; found {}; choose another number.", options.threads);
}

/// Throws after a stop signal. The exception removes the staged files.
void check_stop_signal() {
  if (stop_signal() != 0) throw FailedError("tokenize", "stopped by a signal; nothing was written.");
}

/// Removes files that are read for validation, since they must not be trained on.
void leave_out(std::vector<TextFile>& files, const std::vector<TextFile>& excluded) {
  const auto name = [](const TextFile& file) { return file.path == "-" ? "-" : fs::canonical(file.path).string(); };
  std::set<std::string> names;
  for (const TextFile& file : excluded) names.insert(name(file));
  std::erase_if(files, [&](const TextFile& file) { return names.count(name(file)) > 0; });
  PRISM_CHECK(!files.empty(), "tokenize",
              "expected text to train on; found only files that --valid names too; leave them out of one of the two.");
}

/// Reads the training files, then the validation files, and assigns each document to a split.
class SplitReader {
 public:
  SplitReader(std::vector<TextFile> train, std::vector<TextFile> valid, const TokenizeOptions& options)
      : choose_(valid.empty() && options.valid_share > 0),
        options_(options),
        train_(std::move(train), options.text),
        valid_(std::move(valid), options.text) {}

  int64_t bytes_total() const {
    const int64_t train = train_.bytes_total(), valid = valid_.bytes_total();
    return train == 0 ? 0 : train + valid;
  }

  std::optional<Portion> next() {
    Portion portion;
    for (size_t bytes = 0; bytes < kPortionBytes;) {
      std::optional<EncodedPiece> piece = next_piece();
      if (!piece) break;
      bytes += piece->document.text.size();
      portion.pieces.push_back(std::move(*piece));
    }
    portion.bytes_read = train_.bytes_read() + valid_.bytes_read();
    portion.empty_documents = train_.empty_documents() + valid_.empty_documents();
    if (portion.pieces.empty() && std::exchange(ended_, true)) return std::nullopt;
    return portion;
  }

  /// May be called from any thread.
  void cancel() {
    train_.cancel();
    valid_.cancel();
  }

 private:
  std::optional<EncodedPiece> next_piece() {
    if (auto document = train_.next()) {
      if (document->first) in_valid_ = choose_ && goes_to_valid(documents_++);
      return EncodedPiece{std::move(*document), in_valid_, {}};
    }
    if (auto document = valid_.next()) return EncodedPiece{std::move(*document), true, {}};
    return std::nullopt;
  }

  bool goes_to_valid(uint64_t document) const {
    if (document < 2) return document == 1;
    return Random(static_cast<uint64_t>(options_.seed), document).uniform() < options_.valid_share;
  }

  bool choose_;
  const TokenizeOptions& options_;
  TextSource train_, valid_;
  uint64_t documents_ = 0;
  bool in_valid_ = false, ended_ = false;
};

/// However its scope ends, stops the reader from waiting for input that may never arrive.
class CancelAtEnd {
 public:
  explicit CancelAtEnd(SplitReader& reader) : reader_(reader) {}
  ~CancelAtEnd() { reader_.cancel(); }
  CancelAtEnd(const CancelAtEnd&) = delete;
  CancelAtEnd& operator=(const CancelAtEnd&) = delete;

 private:
  SplitReader& reader_;
};

/// The shards of one split, each closed when it is full.
class SplitWriter {
 public:
  SplitWriter(fs::path folder, std::string split, int64_t vocab_size, int64_t shard_tokens)
      : folder_(std::move(folder)), split_(std::move(split)), vocab_size_(vocab_size), shard_tokens_(shard_tokens) {}

  /// @param marks  of each token, in every call; or none in any.
  void write(std::span<const int32_t> tokens, std::span<const uint8_t> marks = {}) {
    PRISM_ASSERT(marks.empty() || marks.size() == tokens.size(), "tokenize", "{} marks of {} tokens", marks.size(),
                 tokens.size());
    tokens_ += static_cast<int64_t>(tokens.size());
    while (!tokens.empty()) {
      if (shard_ == nullptr) {
        check_stop_signal();  // there may be many small shards
        const auto path = folder_ / fmt::format("{}_{:06}.bin", split_, shards_++);
        shard_ = std::make_unique<TokenShardWriter>(path, vocab_size_);
        if (!marks.empty()) marks_ = std::make_unique<TokenMarksWriter>(marks_file(path));
      }
      const auto room = static_cast<size_t>(shard_tokens_ - shard_->size());
      const size_t count = std::min(room, tokens.size());
      shard_->write(tokens.first(count));
      tokens = tokens.subspan(count);
      if (marks_ != nullptr) {
        marks_->write(marks.first(count));
        marks = marks.subspan(count);
      }
      if (count == room) finish();
    }
  }

  void finish() {
    if (shard_ != nullptr) shard_->commit();
    if (marks_ != nullptr) marks_->commit();
    shard_.reset();
    marks_.reset();
  }

  int64_t tokens() const { return tokens_; }
  int64_t shards() const { return shards_; }

 private:
  fs::path folder_;
  std::string split_;
  int64_t vocab_size_, shard_tokens_, tokens_ = 0, shards_ = 0;
  std::unique_ptr<TokenShardWriter> shard_;
  std::unique_ptr<TokenMarksWriter> marks_;
};

/// Both splits, and their counts.
class DatasetWriter {
 public:
  DatasetWriter(const fs::path& folder, const Tokenizer& tokenizer, int64_t shard_tokens, bool marks)
      : train_(folder, "train", tokenizer.vocab_size(), shard_tokens),
        valid_(folder, "valid", tokenizer.vocab_size(), shard_tokens) {
    info_.vocab_size = tokenizer.vocab_size();
    info_.end_of_text = tokenizer.special_ids().opening.value_or(-1);
    info_.tokenizer_fingerprint = tokenizer.fingerprint_text();
    if (marks) info_.train_assistant_tokens = info_.valid_assistant_tokens = 0;
  }

  void write(const EncodedPiece& piece) {
    SplitWriter& split = piece.valid ? valid_ : train_;
    if (piece.document.first) {
      ++(piece.valid ? info_.valid_documents : info_.train_documents);
      const auto opening = static_cast<int32_t>(info_.end_of_text);
      if (opening >= 0 && !info_.has_marks()) split.write({&opening, 1});
    }
    const EncodedText& encoded = piece.encoded;
    split.write(encoded.tokens, encoded.marks);
    (piece.valid ? info_.valid_bytes : info_.train_bytes) += encoded.bytes;
    text_tokens_ += static_cast<int64_t>(encoded.tokens.size());
    if (info_.has_marks())
      *(piece.valid ? info_.valid_assistant_tokens : info_.train_assistant_tokens) += std::count_if(
          encoded.marks.begin(), encoded.marks.end(), [](uint8_t mark) { return (mark & kAssistantMark) != 0; });
  }

  TokenizeSummary finish() {
    train_.finish();
    valid_.finish();
    info_.train_tokens = train_.tokens();
    info_.valid_tokens = valid_.tokens();
    return {info_, train_.shards(), valid_.shards(), 0, 0};
  }

  int64_t documents() const { return info_.train_documents + info_.valid_documents; }
  int64_t tokens() const { return train_.tokens() + valid_.tokens(); }
  int64_t text_tokens() const { return text_tokens_; }
  const DatasetInfo& info() const { return info_; }

 private:
  DatasetInfo info_;
  SplitWriter train_, valid_;
  int64_t text_tokens_ = 0;  ///< without the tokens that open documents
};

void check_text(const DatasetWriter& writer, int64_t empty_documents, bool valid_named) {
  const DatasetInfo& info = writer.info();
  PRISM_CHECK(info.train_documents > 0 || !info.has_marks(), "tokenize",
              "expected a conversation to train on; found none; give files with a conversation on each line.");
  PRISM_CHECK(info.train_documents > 0, "tokenize",
              "expected text to train on; found only empty documents ({}); give files with text.", empty_documents);
  PRISM_CHECK(info.valid_documents > 0 || !valid_named, "tokenize",
              "expected text in the --valid files; found only empty documents ({}); give files with text.",
              empty_documents);
  PRISM_CHECK(writer.text_tokens() > 0, "tokenize",
              "expected at least one token; found none in {} bytes of text; give more text or another tokenizer.",
              info.train_bytes + info.valid_bytes);
}

}  // namespace

TokenizeSummary tokenize(const std::vector<std::string>& inputs, const std::vector<std::string>& valid_inputs,
                         const Tokenizer& tokenizer, const fs::path& out, const TokenizeOptions& options,
                         const std::function<void(const TokenizeProgress&)>& on_progress) {
  const auto encode = [&](const Document& document) {
    return EncodedText{.tokens = tokenizer.encode(document.text, SpecialTokens::as_text),
                       .bytes = static_cast<int64_t>(document.text.size())};
  };
  return tokenize_documents(inputs, valid_inputs, tokenizer, {encode}, out, options, on_progress);
}

TokenizeSummary tokenize_documents(const std::vector<std::string>& inputs, const std::vector<std::string>& valid_inputs,
                                   const Tokenizer& tokenizer, const DocumentEncoder& encoder, const fs::path& out,
                                   const TokenizeOptions& options,
                                   const std::function<void(const TokenizeProgress&)>& on_progress) {
  check_options(inputs, options);
  int64_t skipped = 0, skipped_valid = 0;
  std::vector<TextFile> files = list_text_files(inputs, options.text, &skipped);
  const std::vector<TextFile> valid_files = list_text_files(valid_inputs, options.text, &skipped_valid);
  leave_out(files, valid_files);
  check_tokenizer_there(out, tokenizer, options.force);

  StagedFolder folder(out, options.force);
  SplitReader reader(files, valid_files, options);
  DatasetWriter writer(folder.staging(), tokenizer, options.shard_tokens, encoder.marks);
  const int64_t bytes_total = reader.bytes_total();
  int64_t empty_documents = 0;
  {
    OrderedPipeline<Portion> pipeline([&] { return reader.next(); },
                                      [&](Portion& portion) {
                                        for (EncodedPiece& piece : portion.pieces)
                                          piece.encoded = encoder.encode(piece.document);
                                      },
                                      thread_limit(options.threads).threads);
    const CancelAtEnd cancel(reader);  // destroyed before the pipeline joins its threads
    while (const std::optional<Portion> portion = pipeline.next()) {
      check_stop_signal();
      for (const EncodedPiece& piece : portion->pieces) writer.write(piece);
      empty_documents = portion->empty_documents;
      if (on_progress) on_progress({portion->bytes_read, bytes_total, writer.documents(), writer.tokens()});
    }
  }
  check_text(writer, empty_documents, !valid_inputs.empty());
  TokenizeSummary summary = writer.finish();
  summary.empty_documents = empty_documents;
  summary.skipped_files = skipped + skipped_valid;
  save_tokenizer(tokenizer, folder.staging());
  write_file(folder.staging() / kDatasetInfoName, to_text(fields_to_json(summary.info), 2) + "\n");
  folder.publish();
  return summary;
}

}  // namespace prism
