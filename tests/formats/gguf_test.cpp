#include "prism/formats/gguf.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "tests/core/message_of.h"
#include "tests/formats/gguf_bytes.h"

namespace prism {
namespace {

std::string gguf_fixture(const std::string& name) {
  return PRISM_SOURCE_DIR "/tests/formats/fixtures/" + name;
}

/// Reads the bytes as a file. They outlive the reader only within one expression.
void read_bytes(const std::string& bytes) {
  const GgufReader reader(span_of(bytes), "a.gguf");
  uint64_t sum = 0;
  for (const GgufTensor& tensor : reader.tensors()) {
    ASSERT_EQ(block_tensor_bytes(tensor.type, tensor.shape), static_cast<int64_t>(tensor.data.size()));
    for (const std::byte byte : tensor.data) sum += static_cast<uint64_t>(byte);
  }
  EXPECT_LE(sum, 255 * bytes.size());
}

TEST(Gguf, ReadsValuesOfEveryTypeAsThePackageGgufWritesThem) {
  const GgufReader reader(gguf_fixture("values.gguf"));
  const GgufMetadata& metadata = reader.metadata();
  EXPECT_EQ(metadata.values().size(), 25u);
  EXPECT_EQ(metadata.text("general.architecture"), "test");
  EXPECT_EQ(metadata.integer("one.uint8"), 255);
  EXPECT_EQ(metadata.integer("one.int8"), 127);
  EXPECT_EQ(metadata.integer("one.uint16"), 65535);
  EXPECT_EQ(metadata.integer("one.int16"), 5);
  EXPECT_EQ(metadata.integer("one.uint32"), 1);
  EXPECT_EQ(metadata.integer("one.int32"), 9);
  EXPECT_EQ(metadata.integer("one.int64"), 3);
  EXPECT_EQ(metadata.find_real("one.float32"), -1.5);
  EXPECT_EQ(metadata.find_real("one.float64"), -2.5e300);
  EXPECT_EQ(metadata.find_real("one.uint64"), 18446744073709551615.0);
  EXPECT_EQ(metadata.find_flag("one.bool"), true);
  EXPECT_EQ(metadata.text("one.string"), std::string("a\0b", 3));
  EXPECT_EQ(metadata.integers("all.uint8"), (std::vector<int64_t>{0, 255}));
  EXPECT_EQ(metadata.integers("all.int8"), (std::vector<int64_t>{-128, 127}));
  EXPECT_EQ(metadata.integers("all.uint16"), (std::vector<int64_t>{65535}));
  EXPECT_EQ(metadata.integers("all.int16"), (std::vector<int64_t>{-32768, 5}));
  EXPECT_EQ(metadata.integers("all.uint32"), (std::vector<int64_t>{4294967295, 1}));
  EXPECT_EQ(metadata.integers("all.int32"), (std::vector<int64_t>{INT32_MIN, 7, 9}));
  EXPECT_EQ(metadata.integers("all.int64"), (std::vector<int64_t>{INT64_MIN, 3}));
  EXPECT_EQ(metadata.find_reals("all.float32"), (std::vector<double>{0.5, -1.5}));
  EXPECT_EQ(metadata.find_reals("all.float64"), (std::vector<double>{0.1, -2.5e300}));
  EXPECT_EQ(metadata.find_reals("all.int32"), (std::vector<double>{INT32_MIN, 7, 9}));
  const auto& flags = std::get<GgufArray>(*metadata.find("all.bool"));
  EXPECT_EQ(std::get<std::vector<bool>>(flags), (std::vector<bool>{true, false, true}));
  EXPECT_EQ(metadata.texts("all.string"), (std::vector<std::string>{"", "h\u00e9llo", std::string("a\0b", 3)}));
  EXPECT_EQ(gguf_type_name(*metadata.find("all.uint64")), "array of uint64");
  EXPECT_EQ(gguf_type_name(*metadata.find("one.float64")), "float64");
}

TEST(Gguf, ReadsTensorsOfEveryTypeInTheOrderOfTheFile) {
  const GgufReader reader(gguf_fixture("tensors.gguf"));
  const auto expected = nlohmann::json::parse(read_file(gguf_fixture("expected.json")));
  ASSERT_EQ(reader.tensors().size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const GgufTensor& tensor = reader.tensors()[i];
    EXPECT_EQ(tensor.name, expected[i]["name"]);
    EXPECT_EQ(block_layout(tensor.type).name, expected[i]["type"].get<std::string>()) << tensor.name;
    EXPECT_EQ(tensor.shape, expected[i]["shape"].get<std::vector<int64_t>>()) << tensor.name;
    const uint64_t sum = std::accumulate(tensor.data.begin(), tensor.data.end(), uint64_t{0},
                                         [](uint64_t total, std::byte byte) { return total + uint64_t(byte); });
    EXPECT_EQ(sum, expected[i]["sum"].get<uint64_t>()) << tensor.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data.data()) % 64, 0u) << tensor.name;
    EXPECT_TRUE(reader.contains(tensor.name));
    EXPECT_EQ(&reader.find(tensor.name), &tensor);
  }
}

TEST(Gguf, NamesTheNearestTensorForAnAbsentOne) {
  const GgufReader reader(gguf_fixture("tensors.gguf"));
  EXPECT_FALSE(reader.contains("vectors"));
  EXPECT_REFUSED(reader.find("vectors"), "expected a tensor vectors; found 15 others, among them vector; name another");
}

TEST(GgufMetadata, RefusesAbsentKeysAndOtherKinds) {
  const GgufReader reader(gguf_fixture("values.gguf"));
  const GgufMetadata& metadata = reader.metadata();
  EXPECT_REFUSED(metadata.integer("one.uint9"),
                 "values.gguf: expected the key one.uint9; found 25 others, among them "
                 "one.uint8; name another file");
  EXPECT_REFUSED(metadata.text("one.bool"), "values.gguf: expected one.bool to be a string; found bool; name another");
  EXPECT_REFUSED(metadata.integer("one.float32"), "expected one.float32 to be an integer; found float32");
  EXPECT_REFUSED(metadata.integer("one.bool"), "expected one.bool to be an integer; found bool");
  EXPECT_REFUSED(metadata.integer("all.int8"), "expected all.int8 to be an integer; found array of int8");
  EXPECT_REFUSED(metadata.integer("one.uint64"),
                 "expected one.uint64 to be at most 9223372036854775807; found "
                 "18446744073709551615; convert");
  EXPECT_REFUSED(metadata.integers("all.uint64"), "to be at most 9223372036854775807; found 18446744073709551615");
  EXPECT_REFUSED(metadata.find_real("one.string"), "expected one.string to be a number; found string");
  EXPECT_REFUSED(metadata.find_flag("one.uint8"), "expected one.uint8 to be a bool; found uint8");
  EXPECT_REFUSED(metadata.texts("one.string"), "to be an array of strings; found string");
  EXPECT_REFUSED(metadata.texts("all.bool"), "to be an array of strings; found array of bool");
  EXPECT_REFUSED(metadata.integers("one.int8"), "to be an array of integers; found int8");
  EXPECT_REFUSED(metadata.integers("all.float32"), "to be an array of integers; found array of float32");
  EXPECT_REFUSED(metadata.find_reals("one.float32"), "to be an array of numbers; found float32");
  EXPECT_REFUSED(metadata.find_reals("all.bool"), "to be an array of numbers; found array of bool");
}

TEST(GgufMetadata, HasNothingForAbsentKeysThatMayBeAbsent) {
  const GgufReader reader(gguf_fixture("values.gguf"));
  const GgufMetadata& metadata = reader.metadata();
  EXPECT_FALSE(metadata.contains("none"));
  EXPECT_EQ(metadata.find("none"), nullptr);
  EXPECT_EQ(metadata.find_text("none"), std::nullopt);
  EXPECT_EQ(metadata.find_integer("none"), std::nullopt);
  EXPECT_EQ(metadata.find_real("none"), std::nullopt);
  EXPECT_EQ(metadata.find_flag("none"), std::nullopt);
  EXPECT_EQ(metadata.find_texts("none"), nullptr);
  EXPECT_EQ(metadata.find_integers("none"), std::nullopt);
  EXPECT_EQ(metadata.find_reals("none"), std::nullopt);
  EXPECT_EQ(metadata.find_text("general.architecture"), "test");
  EXPECT_EQ(metadata.find_integer("one.int8"), 127);
  EXPECT_EQ(metadata.find_real("one.float32"), -1.5);
  EXPECT_EQ(metadata.find_flag("one.bool"), true);
  EXPECT_EQ(metadata.find_texts("all.string")->size(), 3u);
  EXPECT_EQ(metadata.find_integers("all.int16")->size(), 2u);
  EXPECT_EQ(metadata.find_reals("all.float32")->size(), 2u);
  EXPECT_REFUSED(metadata.find_text("one.bool"), "to be a string; found bool");
}

TEST(Gguf, ReadsVersion2AndRefusesOthersAndBigEndianFiles) {
  EXPECT_NO_THROW(read_bytes(GgufBytes(0, 0, 2).bytes()));
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 0, 1).bytes()), "expected a file of version 2 or 3; found version 1; convert");
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 0, 4).bytes()), "found version 4; convert");
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 0, 0).bytes()), "found version 0; convert");
  EXPECT_REFUSED(GgufReader(gguf_fixture("big.gguf")), "found a big-endian one of version 3; convert");
}

TEST(Gguf, RefusesOtherFormats) {
  EXPECT_REFUSED(read_bytes(""),
                 "[gguf] a.gguf: expected a GGUF file, which begins with GGUF; found an empty file; name");
  EXPECT_REFUSED(read_bytes("GG"), "found \"GG\"; name another");
  EXPECT_REFUSED(read_bytes("ggjt, an older format"), "found \"ggjt\"; name another");
  EXPECT_REFUSED(GgufReader(gguf_fixture("absent.gguf")), "absent.gguf");
}

TEST(Gguf, AcceptsAFileWithoutTensorsOrKeys) {
  read_bytes(GgufBytes(0, 0).bytes());
  read_bytes(GgufBytes(0, 0).raw("bytes after the last tensor").bytes());
}

TEST(Gguf, AcceptsScalarsEmptyTensorsAndGaps) {
  const std::string bytes = GgufBytes(3, 0)
                                .tensor("scalar", {}, 0, 64)
                                .tensor("empty", {0, 3}, 0, 0)
                                .tensor("w", {2, 3}, 0, 0)
                                .pad(32)
                                .raw(std::string(68, 'x'))
                                .bytes();
  const GgufReader reader(span_of(bytes), "a.gguf");
  EXPECT_TRUE(reader.find("scalar").shape.empty());
  EXPECT_EQ(reader.find("scalar").data.size(), 4u);
  EXPECT_EQ(reader.find("empty").data.size(), 0u);
  EXPECT_EQ(reader.find("w").shape, (std::vector<int64_t>{3, 2}));
}

TEST(Gguf, RefusesCountsThatTheFileCannotHold) {
  for (const uint64_t count : {uint64_t{1}, uint64_t{1} << 60, UINT64_MAX}) {
    const std::string expected = "a.gguf: expected " + std::to_string(count);
    EXPECT_REFUSED(read_bytes(GgufBytes(count, 0).bytes()), expected + " tensors; found only 8 bytes to the end");
    EXPECT_REFUSED(read_bytes(GgufBytes(0, count).bytes()), expected + " keys; found only 0 bytes to the end");
  }
  // There is room for the tensor before the key is read, but not after.
  EXPECT_REFUSED(read_bytes(GgufBytes(1, 1).key("k", 8).text("a text").bytes()), "expected 1 tensors; found only 0");
}

TEST(Gguf, RefusesStringsAndArraysLongerThanTheFile) {
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 60, UINT64_MAX}) {
    const std::string expected = "expected " + std::to_string(count);
    EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("k", 8).number(count).raw("ab").bytes()),
                   "a.gguf: k: " + expected + " bytes at byte 45; found 2 to the end of the file");
    for (const uint32_t type : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 10u, 11u, 12u})
      EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("k", 9).number(type).number(count).raw("\1").raw("\1").bytes()),
                     "a.gguf: k: " + expected + " elements; found only 2 bytes to the end of the file");
  }
  // 2^61 elements of 8 bytes are 0 bytes modulo 2^64.
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("k", 9).number(10u).number(uint64_t{1} << 61).bytes()), "elements;");
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).number(uint64_t{99}).raw("abcde").bytes()), "expected 99 bytes at byte 32");
}

TEST(Gguf, RefusesValuesThatAreNone) {
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("k", 13).raw("12345678").bytes()),
                 "a.gguf: k: expected a value of a type from 0 to 12; found 13; the file is damaged");
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("k", 9).number(UINT32_MAX).number(uint64_t{0}).bytes()),
                 "type from 0 to 12; found 4294967295");
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("k", 9).number(9u).number(uint64_t{0}).bytes()),
                 "a.gguf: k: expected an array of numbers, bools or strings; found an array of arrays; convert");
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("k", 7).raw("\2").bytes()),
                 "a.gguf: k: expected a bool, 0 or 1; found 2");
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("k", 9).number(7u).number(uint64_t{2}).raw("\1\2").bytes()),
                 "expected a bool, 0 or 1; found 2");
}

TEST(Gguf, RefusesKeysAndNamesGivenTwiceAndKeysThatAreTooLong) {
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 2).key("k", 0).raw("a").key("k", 1).raw("b").bytes()),
                 "a.gguf: k: expected every key once; found it twice");
  EXPECT_REFUSED(read_bytes(GgufBytes(2, 0).tensor("w", {}, 0, 0).tensor("w", {}, 0, 32).bytes()),
                 "a.gguf: w: expected every tensor once; found it twice");
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key(std::string(65536, 'k'), 0).raw("a").bytes()),
                 "expected keys of at most 65535 bytes; found one of 65536");
  read_bytes(GgufBytes(0, 1).key(std::string(65535, 'k'), 0).raw("a").bytes());
}

TEST(Gguf, RefusesAlignmentsThatAreNoPowerOfTwo) {
  const auto aligned = [](uint32_t value) { return GgufBytes(0, 1).key("general.alignment", 4).number(value).bytes(); };
  for (const uint32_t value : {0u, 3u, 33u, UINT32_MAX})
    EXPECT_REFUSED(read_bytes(aligned(value)),
                   "expected general.alignment to be a power of two; found " + std::to_string(value) + "; convert");
  for (const uint32_t value : {1u, 8u, 1u << 31}) read_bytes(aligned(value));
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("general.alignment", 11).number(int64_t{-32}).bytes()), "found -32;");
  EXPECT_REFUSED(read_bytes(GgufBytes(0, 1).key("general.alignment", 7).raw("\1").bytes()), "an integer; found bool");
}

std::string one_tensor(const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset, size_t data_bytes) {
  return GgufBytes(1, 0).tensor("w", sizes, type, offset).pad(32).raw(std::string(data_bytes, 'x')).bytes();
}

TEST(Gguf, RefusesTensorsWithShapesOrTypesThatItCannotHave) {
  read_bytes(one_tensor({1, 1, 1, 4}, 0, 0, 16));
  EXPECT_REFUSED(read_bytes(one_tensor({1, 1, 1, 1, 4}, 0, 0, 16)),
                 "a.gguf: w: expected at most 4 dimensions; found 5");
  EXPECT_REFUSED(read_bytes(one_tensor({uint64_t{1} << 63}, 0, 0, 16)),
                 "expected dimensions of at most 9223372036854775807; found 9223372036854775808");
  EXPECT_REFUSED(read_bytes(one_tensor({32}, 16, 0, 66)), "a.gguf: w: expected a type that is one of F32");
  EXPECT_REFUSED(read_bytes(one_tensor({32}, 16, 0, 66)), "found ggml's type 16 (IQ2_XXS); convert");
  EXPECT_REFUSED(read_bytes(one_tensor({16, 2}, 2, 0, 18)),
                 "expected rows of whole Q4_0 blocks (32 values each) and a size that int64 can count; found the shape "
                 "[2,16]; the file is damaged");
  EXPECT_REFUSED(read_bytes(one_tensor({uint64_t{1} << 40, uint64_t{1} << 40}, 0, 0, 16)), "that int64 can count");
}

TEST(Gguf, RefusesTensorsOutsideTheFileOrMisaligned) {
  read_bytes(one_tensor({4}, 0, 32, 48));
  EXPECT_REFUSED(read_bytes(one_tensor({4}, 0, 8, 48)),
                 "a.gguf: w: expected its data at a multiple of 32 bytes; found byte 8;");
  EXPECT_REFUSED(read_bytes(one_tensor({4}, 0, 32, 47)),
                 "a.gguf: w: expected 16 bytes at byte 32 of the data; found 47 bytes of data; the file is cut short");
  EXPECT_REFUSED(read_bytes(one_tensor({4}, 0, 64, 48)), "expected 16 bytes at byte 64");
  EXPECT_REFUSED(read_bytes(one_tensor({4}, 0, UINT64_MAX - 31, 48)), "expected 16 bytes at byte 18446744073709551584");
  EXPECT_REFUSED(read_bytes(one_tensor({0}, 0, 64, 48)), "expected 0 bytes at byte 64");
  EXPECT_REFUSED(read_bytes(one_tensor({uint64_t{1} << 60}, 0, 0, 48)), "expected 4611686018427387904 bytes at byte 0");
}

TEST(Gguf, RefusesTensorsThatOverlap) {
  const auto three = [](uint64_t a, uint64_t b, uint64_t c) {
    return GgufBytes(3, 0)
        .tensor("a", {16}, 0, a)
        .tensor("b", {9}, 0, b)
        .tensor("c", {1}, 0, c)
        .pad(32)
        .raw(std::string(192, 'x'))
        .bytes();
  };
  read_bytes(three(0, 64, 128));
  read_bytes(three(64, 128, 0));
  EXPECT_REFUSED(read_bytes(three(0, 32, 128)),
                 "a.gguf: expected b to begin at byte 64 of the data or later, after a; "
                 "found byte 32: they overlap; the file is damaged");
  EXPECT_REFUSED(read_bytes(three(0, 64, 0)),
                 "expected c to begin at byte 64 of the data or later, after a; found byte 0");
  EXPECT_REFUSED(read_bytes(three(0, 64, 96)), "expected c to begin at byte 100 of the data or later, after b");
}

TEST(Gguf, RefusesEveryTruncationOrNeedsNoMoreBytes) {
  for (const char* name : {"values.gguf", "tensors.gguf"}) {
    const std::string bytes = read_file(gguf_fixture(name));
    size_t needed = 0;
    for (const GgufReader reader(span_of(bytes), name); const GgufTensor& tensor : reader.tensors())
      needed = std::max(needed, static_cast<size_t>(tensor.data.data() + tensor.data.size() - span_of(bytes).data()));
    ASSERT_GT(needed, bytes.size() - 64) << "only padding may be missing";
    for (size_t size = 0; size < bytes.size(); ++size) {
      const std::string cut = bytes.substr(0, size);  // a copy, so that the sanitizer sees every access beyond its end
      SCOPED_TRACE(size);
      if (size < needed)
        EXPECT_REFUSED(read_bytes(cut), "a.gguf: ");
      else
        EXPECT_EQ(message_of([&] { read_bytes(cut); }), "");
    }
  }
}

TEST(Gguf, RefusesOrAcceptsMutatedBytesButNeverReadsOutsideTheFile) {
  Random random(1);
  int refused = 0;
  const std::string files[] = {read_file(gguf_fixture("values.gguf")), read_file(gguf_fixture("tensors.gguf"))};
  for (int round = 0; round < 2000; ++round) {
    std::string mutated = files[round % 2];
    if (random.below(4) == 0) mutated.resize(1 + random.below(mutated.size()));
    for (uint64_t change = random.below(4) + 1; change > 0; --change)
      mutated[random.below(std::min<size_t>(mutated.size(), 1200))] = static_cast<char>(random.below(256));
    refused += !message_of([&] { read_bytes(mutated); }).empty();
  }
  EXPECT_GT(refused, 300);
  EXPECT_LT(refused, 2000);
}

}  // namespace
}  // namespace prism
