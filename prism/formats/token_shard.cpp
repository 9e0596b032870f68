#include "prism/formats/token_shard.h"

#include <array>
#include <bit>
#include <cstring>
#include <vector>

#include "prism/core/error.h"

namespace prism {
namespace {

static_assert(std::endian::native == std::endian::little, "shards are little-endian and are read in place");

using Header = std::array<int32_t, 256>;
constexpr size_t kHeaderBytes = sizeof(Header);
constexpr int32_t kNarrowMagic = 20240520, kNarrowVersion = 1;
constexpr int32_t kWideMagic = 20240801, kWideVersion = 7;
constexpr int64_t kNarrowVocab = 65536;

template <class Stored>
std::vector<Stored> convert(std::span<const int32_t> tokens) {
  return {tokens.begin(), tokens.end()};
}

}  // namespace

TokenShard::TokenShard(const std::filesystem::path& path) : path_(path), file_(path) {
  const auto bytes = file_.bytes();
  PRISM_CHECK(bytes.size() >= kHeaderBytes, "token_shard",
              "{}: expected a header of {} bytes; found {} bytes; it is cut short or no token shard, name another.",
              path.string(), kHeaderBytes, bytes.size());
  Header header;
  std::memcpy(header.data(), bytes.data(), kHeaderBytes);
  const bool narrow = header[0] == kNarrowMagic && header[1] == kNarrowVersion;
  const bool wide = header[0] == kWideMagic && header[1] == kWideVersion;
  PRISM_CHECK(narrow || wide, "token_shard",
              "{}: expected magic {} version {} (uint16 tokens) or {} version {} (uint32); found {} version {}; make "
              "shards with prism tokenize.",
              path.string(), kNarrowMagic, kNarrowVersion, kWideMagic, kWideVersion, header[0], header[1]);
  PRISM_CHECK(header[2] >= 0, "token_shard",
              "{}: expected a count of tokens; found {}; the header is damaged, run prism tokenize again.",
              path.string(), header[2]);
  size_ = header[2];
  const size_t expected = kHeaderBytes + static_cast<size_t>(size_) * (narrow ? sizeof(uint16_t) : sizeof(uint32_t));
  PRISM_CHECK(bytes.size() == expected, "token_shard",
              "{}: expected {} bytes for the {} tokens of its header; found {}; the file is {}, write or fetch it "
              "again.",
              path.string(), expected, size_, bytes.size(),
              bytes.size() < expected ? "cut short" : "longer than its header says");
  const std::byte* tokens = bytes.data() + kHeaderBytes;
  if (narrow) narrow_ = reinterpret_cast<const uint16_t*>(tokens);
  if (wide) wide_ = reinterpret_cast<const uint32_t*>(tokens);
}

TokenShardWriter::TokenShardWriter(const std::filesystem::path& path, int64_t vocab_size)
    : file_(path), vocab_size_(vocab_size) {
  PRISM_CHECK(vocab_size >= 1 && vocab_size <= INT32_MAX, "token_shard",
              "expected a vocabulary of 1 to {} tokens; found {}; name a tokenizer with such a vocabulary.", INT32_MAX,
              vocab_size);
  // The header is zero until commit(), so a shard whose writer died has no magic.
  const Header header{};
  file_.write(header.data(), kHeaderBytes);
}

void TokenShardWriter::write(std::span<const int32_t> tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  PRISM_CHECK(count <= kMaxShardTokens - size_, "token_shard",
              "expected at most {} tokens in one shard (its header counts in int32); found {}; write smaller shards.",
              kMaxShardTokens, size_ + count);
  for (const int32_t token : tokens) {
    PRISM_CHECK(token >= 0 && token < vocab_size_, "token_shard",
                "expected tokens from 0 to {}; found {}; the text was encoded by another tokenizer, encode it again.",
                vocab_size_ - 1, token);
  }
  if (vocab_size_ > kNarrowVocab) {
    file_.write(tokens.data(), tokens.size_bytes());
  } else {
    const auto stored = convert<uint16_t>(tokens);
    file_.write(stored.data(), stored.size() * sizeof(uint16_t));
  }
  size_ += count;
}

void TokenShardWriter::commit() {
  const bool wide = vocab_size_ > kNarrowVocab;
  const Header header = {wide ? kWideMagic : kNarrowMagic, wide ? kWideVersion : kNarrowVersion,
                         static_cast<int32_t>(size_)};
  file_.write_at(0, header.data(), kHeaderBytes);
  file_.commit();
}

}  // namespace prism
