// Token shards in llm.c's format: a header of 256 int32 (magic, version, count), then the tokens.
//
//   20240520 version 1: uint16 tokens.   20240801 version 7: uint32 tokens.
//
//   TokenShardWriter writer("train_000000.bin", tokenizer.vocab_size());  writer.write(ids);  writer.commit();
//   TokenShard shard("train_000000.bin");  int32_t first = shard[0];
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "prism/core/files.h"
#include "prism/core/mapped_file.h"

namespace prism {

/// Upper limit, since the header stores the count as int32.
constexpr int64_t kMaxShardTokens = INT32_MAX;

/// One mapped shard with random access to its tokens, whether uint16 or uint32.
class TokenShard {
 public:
  /// @throws InputError for a wrong magic or version, or if the size does not match the count.
  explicit TokenShard(const std::filesystem::path& path);

  int64_t size() const { return size_; }
  int32_t operator[](int64_t i) const { return wide_ ? static_cast<int32_t>(wide_[i]) : narrow_[i]; }
  const std::filesystem::path& path() const { return path_; }
  /// See MappedFile::check_whole().
  void check_whole() const { file_.check_whole(); }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  const uint16_t* narrow_ = nullptr;
  const uint32_t* wide_ = nullptr;
  int64_t size_ = 0;
};

/// Appends tokens to a new shard, which has a temporary name until commit().
class TokenShardWriter {
 public:
  /// @param vocab_size  the shard holds uint32 tokens if it is above 65536, else uint16.
  TokenShardWriter(const std::filesystem::path& path, int64_t vocab_size);
  /// @throws InputError for a token outside [0, vocab_size), or if the shard would exceed kMaxShardTokens.
  void write(std::span<const int32_t> tokens);
  int64_t size() const { return size_; }
  /// Writes the count into the header, calls fsync and renames.
  void commit();

 private:
  AtomicFile file_;
  int64_t vocab_size_;
  int64_t size_ = 0;
};

}  // namespace prism
