#include "prism/formats/token_shard.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/random.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

class TokenShards : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "train_000000.bin"; }

  std::string write(const std::vector<int32_t>& tokens, int64_t vocab_size) {
    TokenShardWriter writer(path(), vocab_size);
    writer.write(tokens);
    writer.commit();
    return read_file(path());
  }

  /// Does not use write_file() or overwrite the old file: hundreds of flushes to disk are slow.
  void put_bytes(const std::string& bytes) {
    std::filesystem::remove(path());
    std::ofstream(path(), std::ios::binary) << bytes;
  }

  /// The message for a shard with this beginning of a header.
  std::string refusal(const std::vector<int32_t>& header, size_t data_bytes) {
    std::string bytes(1024 + data_bytes, '\0');
    std::memcpy(bytes.data(), header.data(), header.size() * sizeof(int32_t));
    put_bytes(bytes);
    return message_of([&] { TokenShard shard(path()); });
  }

  TemporaryFolder folder_;
};

TEST_F(TokenShards, SurviveARoundTripInBothWidths) {
  for (const int64_t vocab_size : {65536, 65537}) {
    const std::vector<int32_t> tokens = {0, 1, 255, 256, 65535};
    const std::string bytes = write(tokens, vocab_size);
    EXPECT_EQ(bytes.size(), 1024 + tokens.size() * (vocab_size > 65536 ? 4 : 2));
    const TokenShard shard(path());
    ASSERT_EQ(shard.size(), 5);
    for (size_t i = 0; i < tokens.size(); ++i) EXPECT_EQ(shard[static_cast<int64_t>(i)], tokens[i]);
  }
}

TEST_F(TokenShards, HaveTheHeaderOfLlmC) {
  for (const auto& [vocab_size, magic, version] : {std::tuple{50257, 20240520, 1}, {128256, 20240801, 7}}) {
    const std::string bytes = write({1, 2, 3}, vocab_size);
    int32_t header[256];
    std::memcpy(header, bytes.data(), sizeof header);
    EXPECT_EQ(header[0], magic);
    EXPECT_EQ(header[1], version);
    EXPECT_EQ(header[2], 3);
    for (int i = 3; i < 256; ++i) EXPECT_EQ(header[i], 0);
  }
}

TEST_F(TokenShards, AreAbsentUntilCommit) {
  {
    TokenShardWriter writer(path(), 10);
    writer.write(std::vector<int32_t>{1});
    EXPECT_EQ(writer.size(), 1);
    EXPECT_FALSE(std::filesystem::exists(path()));
  }
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(TokenShards, RefuseTokensOutsideTheVocabulary) {
  TokenShardWriter writer(path(), 10);
  EXPECT_NE(message_of([&] {
              writer.write(std::vector<int32_t>{1, 10});
            }).find("from 0 to 9; found 10"),
            std::string::npos);
  EXPECT_NE(message_of([&] { writer.write(std::vector<int32_t>{-1}); }).find("found -1"), std::string::npos);
  EXPECT_EQ(writer.size(), 0);
  EXPECT_NE(message_of([&] { TokenShardWriter other(path(), 0); }), "");
}

TEST_F(TokenShards, RefuseMoreTokensThanTheHeaderCounts) {
  // Only the sizes matter: the check comes before the first read.
  TokenShardWriter writer(path(), 10);
  const int32_t token = 1;
  const std::span<const int32_t> too_many(&token, static_cast<size_t>(kMaxShardTokens) + 1);
  EXPECT_NE(message_of([&] { writer.write(too_many); }).find("at most 2147483647 tokens in one shard"),
            std::string::npos);
}

TEST_F(TokenShards, RefuseAWrongMagicVersionOrCount) {
  EXPECT_NE(refusal({20240521, 1, 0}, 0).find("found 20240521 version 1"), std::string::npos);
  EXPECT_NE(refusal({20240520, 7, 0}, 0).find("found 20240520 version 7"), std::string::npos);
  EXPECT_NE(refusal({20240801, 1, 0}, 0).find("found 20240801 version 1"), std::string::npos);
  EXPECT_NE(refusal({20240520, 1, -1}, 0).find("found -1"), std::string::npos);
  EXPECT_NE(refusal({20240520, 1, 3}, 5).find("cut short"), std::string::npos);
  EXPECT_NE(refusal({20240520, 1, 3}, 7).find("longer than its header says"), std::string::npos);
  EXPECT_NE(refusal({20240801, 7, INT32_MAX}, 8).find("cut short"), std::string::npos);
  EXPECT_EQ(refusal({20240801, 7, 2}, 8), "");
}

TEST_F(TokenShards, RefuseEveryTruncation) {
  const std::string bytes = write({1, 2, 3, 4, 5}, 100);
  for (size_t size = 0; size < bytes.size(); size += size < 1020 ? 51 : 1) {
    put_bytes(bytes.substr(0, size));
    EXPECT_NE(message_of([&] { TokenShard shard(path()); }), "") << size;
  }
}

TEST_F(TokenShards, RefuseOrAcceptMutatedBytesButNeverReadOutsideTheFile) {
  const std::string bytes = write({1, 2, 3, 4, 5}, 100);
  Random random(2);
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string mutated = bytes;
    mutated[random.below(2) ? random.below(12) : random.below(mutated.size())] = static_cast<char>(random.below(256));
    if (random.below(4) == 0) mutated.resize(random.below(mutated.size() + 1));
    put_bytes(mutated);
    refused += !message_of([&] {
                  const TokenShard shard(path());
                  int64_t sum = 0;
                  for (int64_t i = 0; i < shard.size(); ++i) sum += shard[i];
                  EXPECT_LE(sum, 5 * 65535);
                }).empty();
  }
  EXPECT_GT(refused, 300);
  EXPECT_LT(refused, 1000);
}

}  // namespace
}  // namespace prism
