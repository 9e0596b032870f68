// Files of SentencePiece and llama2.c that are damaged, lie, or ask for more than prism offers.
#include "prism/tokenizer/sources/sentencepiece_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "prism/core/error.h"
#include "prism/tokenizer/sources/llama2c_file.h"
#include "prism/tokenizer/sources/scored_pieces.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string number_field(uint64_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}

std::string bytes_field(uint64_t number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}

std::string score_field(float score) {
  std::string bytes(4, '\0');
  std::memcpy(bytes.data(), &score, 4);
  return varint(2 << 3 | 5) + bytes;
}

std::string piece_field(const std::string& text, float score = 0, uint64_t type = 1) {
  return bytes_field(1, bytes_field(1, text) + score_field(score) + number_field(3, type));
}

constexpr uint64_t kTypeUnknown = 2, kTypeUserDefined = 4, kTypeUnused = 5, kTypeByte = 6;

/// A model that is whole: <unk>, the bytes, "a", "b", "ab".
std::string small_model(const std::string& trainer = "", const std::string& normalizer = "",
                        const std::string& pieces = "") {
  std::string model = piece_field("<unk>", 0, kTypeUnknown);
  for (int byte = 0; byte < 256; ++byte) model += piece_field(fmt::format("<0x{:02X}>", byte), 0, kTypeByte);
  model += piece_field("a", -2) + piece_field("b", -3) + piece_field("ab", -1) + pieces;
  model += bytes_field(2, number_field(3, 2) + number_field(35, 1) + trainer);
  return model + bytes_field(3, bytes_field(1, "identity") + number_field(4, 0) + normalizer);
}

Tokenizer tokenizer_of(const std::string& model) {
  return Tokenizer::from_file(parse_sentencepiece_file(model, "some.model"), "some.model");
}

TEST(SentencePieceFile, ReadsASmallModel) {
  const Tokenizer tokenizer = tokenizer_of(small_model());
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  // The dummy prefix has no token here, so it is three bytes.
  EXPECT_EQ(tokenizer.encode("aab"), (std::vector<int32_t>{1 + 0xE2, 1 + 0x96, 1 + 0x81, 257, 259}));
}

TEST(SentencePieceFile, MergesEqualScoresFromTheLeft) {
  // "aba" and "bab" have one score; ids and lengths do not matter.
  const std::string pieces = piece_field("aba", -0.5f) + piece_field("bab", -0.5f) + piece_field("ba", -0.9f);
  const Tokenizer tokenizer = tokenizer_of(small_model("", number_field(3, 0), pieces));
  const auto id = [&](const char* text) { return tokenizer.find(text).value(); };
  EXPECT_EQ(tokenizer.encode("bab"), (std::vector{id("bab")}));
  EXPECT_EQ(tokenizer.encode("abab"), (std::vector{id("aba"), id("b")}));
}

TEST(SentencePieceFile, RefusesEveryTruncation) {
  const std::string model = read_file(fixture_path("scored.model"));
  int refused = 0;
  for (size_t size = 0; size < model.size(); size += 13)
    refused += !message_of([&] { tokenizer_of(model.substr(0, size)); }).empty();
  EXPECT_EQ(static_cast<size_t>(refused), (model.size() + 12) / 13);
  EXPECT_REFUSED(tokenizer_of(""), "found no pieces");
  EXPECT_REFUSED(tokenizer_of(model.substr(0, model.size() / 2)), "some.model: expected");
}

TEST(SentencePieceFile, RefusesWhatIsNoProtobuf) {
  EXPECT_REFUSED(tokenizer_of("\x08"), "ends inside a number");
  EXPECT_REFUSED(tokenizer_of(std::string(1, '\x15') + "abc"), "ends inside a number");
  EXPECT_REFUSED(tokenizer_of("\x0A\x05"
                              "ab"),
                 "a field of 5 bytes where 2 are left");
  EXPECT_REFUSED(tokenizer_of("\x0A" + varint(UINT64_MAX)), "a field of 18446744073709551615 bytes");
  EXPECT_REFUSED(tokenizer_of("\x08" + std::string(11, '\xFF')), "found a longer one");
  EXPECT_REFUSED(tokenizer_of(std::string("\x02\x00", 2)), "found 0");
  EXPECT_REFUSED(tokenizer_of("\x0B"), "wire types 0, 1, 2 and 5; found 3");
  EXPECT_REFUSED(tokenizer_of(number_field(1, 5)), "field 1 to have the wire type 2; found 0");
  EXPECT_REFUSED(tokenizer_of(bytes_field(1, bytes_field(2, "abcd"))), "field 2 to have the wire type 5; found 2");
  EXPECT_REFUSED(tokenizer_of(bytes_field(1, bytes_field(3, "abcd"))), "field 3 to have the wire type 0; found 2");
  EXPECT_REFUSED(tokenizer_of(small_model(bytes_field(35, "x"))), "field 35 to have the wire type 0; found 2");
}

TEST(SentencePieceFile, IgnoresFieldsItDoesNotKnow) {
  const std::string model = small_model() + number_field(200, 1) + varint(201 << 3 | 1) + "12345678" +
                            bytes_field(202, "x") + varint(203 << 3 | 5) + "1234";
  EXPECT_EQ(tokenizer_of(model).fingerprint(), tokenizer_of(small_model()).fingerprint());
}

TEST(SentencePieceFile, NamesWhatItDoesNotSupport) {
  EXPECT_REFUSED(tokenizer_of(small_model(number_field(3, 1))), "found unigram");
  EXPECT_REFUSED(tokenizer_of(small_model(number_field(3, 3))), "found word");
  EXPECT_REFUSED(tokenizer_of(small_model(number_field(3, 4))), "found char");
  EXPECT_REFUSED(tokenizer_of(small_model(number_field(3, 9))), "found 9");
  EXPECT_REFUSED(tokenizer_of(piece_field("a")), "found unigram");  // the format's default
  EXPECT_REFUSED(tokenizer_of(small_model(number_field(35, 0))), "byte_fallback");
  EXPECT_REFUSED(tokenizer_of(small_model(number_field(24, 1))), "treat_whitespace_as_suffix");
  EXPECT_REFUSED(tokenizer_of(small_model("", number_field(5, 0))), "escape_whitespaces off");
  EXPECT_REFUSED(tokenizer_of(small_model("", bytes_field(1, "nmt_nfkc") + bytes_field(2, "map"))), "\"nmt_nfkc\"");
  EXPECT_REFUSED(tokenizer_of(small_model() + bytes_field(5, bytes_field(2, "map"))), "denormalizer");
  EXPECT_REFUSED(tokenizer_of(small_model("", "", piece_field("u", 0, kTypeUnused))), "unused pieces");
  EXPECT_REFUSED(tokenizer_of(small_model("", "", piece_field("u", 0, kTypeUserDefined))), "user-defined pieces");
  EXPECT_NO_THROW(tokenizer_of(small_model("", number_field(3, 0), piece_field("u", 0, kTypeUserDefined))));
}

TEST(SentencePieceFile, RefusesBrokenPieces) {
  EXPECT_REFUSED(tokenizer_of(small_model("", "", piece_field(""))), "found token 260 empty");
  EXPECT_REFUSED(tokenizer_of(small_model("", "", piece_field("ab"))), "found \"ab\" at 259 and 260");
  EXPECT_REFUSED(tokenizer_of(small_model("", "", piece_field("\xFF"))),
                 "expected tokens in UTF-8; found that token 260");
  EXPECT_REFUSED(tokenizer_of(small_model("", "", piece_field("c", std::nanf("")))), "found NaN for \"c\" at 260");
  EXPECT_REFUSED(tokenizer_of(small_model("", "", piece_field("c", 0, kTypeByte))), "found \"c\" at 260");
  EXPECT_REFUSED(tokenizer_of(small_model("", "", piece_field("c", 0, 77))), "types 1 to 6; found 77");
  EXPECT_REFUSED(tokenizer_of(small_model("", "", piece_field(std::string(kMostPieceBytes + 1, 'c')))),
                 "at most 512 bytes");
  const std::string without = bytes_field(2, number_field(3, 2) + number_field(35, 1)) + piece_field("a");
  EXPECT_REFUSED(tokenizer_of(without), "found none for byte 0x00");
  EXPECT_NO_THROW(tokenizer_of(small_model("", "", piece_field("c", -INFINITY))));
}

TEST(SentencePieceFile, TakesTimeInProportionToItsSize) {
  // All prefixes of the longest piece are pieces: the most merges for the size.
  std::string pieces;
  for (size_t length = 3; length <= kMostPieceBytes; ++length) pieces += piece_field(std::string(length, 'a'), -1);
  const Tokenizer tokenizer = tokenizer_of(small_model("", number_field(3, 0), pieces));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(std::string(1 << 20, 'a'))), std::string(1 << 20, 'a'));
}

/// tok512.bin's layout: <unk>, <s>, </s>, the bytes, and `more`.
std::string small_table(const std::vector<std::string>& more) {
  std::vector<std::string> tokens = {"<unk>", "\n<s>\n", "\n</s>\n"};
  for (int byte = 0; byte < 256; ++byte) tokens.push_back(fmt::format("<0x{:02X}>", byte));
  tokens.insert(tokens.end(), more.begin(), more.end());
  const auto number = [](auto value) {
    std::string bytes(4, '\0');
    std::memcpy(bytes.data(), &value, 4);
    return bytes;
  };
  std::string table = number(uint32_t{8});
  float score = 0;
  for (const auto& token : tokens) table += number(score -= 1) + number(static_cast<int32_t>(token.size())) + token;
  return table;
}

TEST(Llama2cFile, ReadsATable) {
  const TemporaryFolder folder;
  write_file(folder.path() / "tokenizer.bin", small_table({" a", " ", "a", "b"}));
  const Tokenizer tokenizer = Tokenizer::load(folder.path() / "tokenizer.bin");
  EXPECT_EQ(tokenizer.encode("ab a"), (std::vector<int32_t>{259, 262, 259}));
  EXPECT_EQ(tokenizer.encode("<s>a"), (std::vector<int32_t>{1, 259}));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{259, 262, 259}), "ab a");
  // Older files have characters of Latin-1 instead.
  std::string older = small_table({"a"});
  for (int byte = 0; byte < 256; ++byte) {
    const std::string spelling = fmt::format("<0x{:02X}>", byte);
    const size_t at = older.find(spelling);
    const std::string character = utf8(static_cast<uint32_t>(byte));
    older.replace(at, spelling.size(), character);
    older[at - 4] = static_cast<char>(character.size());
  }
  EXPECT_EQ(Tokenizer::from_file(parse_llama2c_file(older, "old"), "old").encode("a\n"),
            Tokenizer::from_file(parse_llama2c_file(small_table({"a"}), "new"), "new").encode("a\n"));
}

TEST(Llama2cFile, RefusesWhatIsNoTable) {
  const auto read = [](const std::string& bytes) {
    Tokenizer::from_file(parse_llama2c_file(bytes, "some.bin"), "some.bin");
  };
  EXPECT_REFUSED(read("abc"), "found 3 bytes");
  EXPECT_REFUSED(read(std::string(4, '\0')), "found 0; name a whole");
  const std::string table = small_table({"a"});
  EXPECT_REFUSED(read(table.substr(0, table.size() - 1)), "expected token 259 of a table");
  EXPECT_REFUSED(read(table.substr(0, table.size() - 5)), "expected token 259 of a table");
  EXPECT_REFUSED(read(table.substr(0, 1000)), "expected");
  std::string negative = table;
  negative[8] = '\xFF', negative[11] = '\xFF';
  EXPECT_REFUSED(read(negative), "expected token 0 of a table");
  EXPECT_REFUSED(read(small_table({"longer than 8 bytes"})), "the longest token has 8");
  EXPECT_REFUSED(read(small_table({"a", "a"})), "found \"a\" at 259 and 260");
}

}  // namespace
}  // namespace prism
