#include "prism/formats/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "prism/core/error.h"
#include "prism/core/random.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

template <class Value>
std::span<const std::byte> bytes_of(const std::vector<Value>& values) {
  return std::as_bytes(std::span(values));
}

/// Writes a file with this header and data, like a writer without any checks.
std::string file_bytes(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + data;
}

class Safetensors : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "model.safetensors"; }

  std::string write_valid() {
    const std::vector<float> matrix = {1, 2, 3, 4, 5, 6};
    const std::vector<int64_t> scalar = {-7};
    SafetensorsWriter writer(path(),
                             {{"layers.0.w", ElementType::f32, {2, 3}, {}},
                              {"step", ElementType::i64, {}, {}},
                              {"empty", ElementType::bf16, {0, 4}, {}}},
                             {{"source", "test"}});
    writer.write(bytes_of(matrix));
    writer.write(bytes_of(scalar));
    writer.write({});
    writer.commit();
    return read_file(path());
  }

  /// Does not use write_file() or overwrite the old file: hundreds of flushes to disk are slow.
  void put_bytes(const std::string& bytes) {
    std::filesystem::remove(path());
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  void put(const std::string& header, const std::string& data = "") { put_bytes(file_bytes(header, data)); }
  SafetensorsReader read() { return SafetensorsReader(path()); }

  TemporaryFolder folder_;
};

TEST_F(Safetensors, SurviveARoundTrip) {
  write_valid();
  const SafetensorsReader reader = read();
  ASSERT_EQ(reader.entries().size(), 3u);
  EXPECT_EQ(reader.entries()[0].name, "layers.0.w");
  EXPECT_EQ(reader.entries()[2].name, "empty");
  const TensorEntry& matrix = reader.find("layers.0.w");
  EXPECT_EQ(matrix.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(matrix.type, ElementType::f32);
  float values[6];
  ASSERT_EQ(matrix.data.size(), sizeof values);
  std::memcpy(values, matrix.data.data(), sizeof values);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(values[i], static_cast<float>(i + 1));
  EXPECT_TRUE(reader.find("step").shape.empty());
  EXPECT_EQ(reader.find("step").bytes(), 8);
  EXPECT_EQ(reader.find("empty").bytes(), 0);
  EXPECT_EQ(reader.metadata().at("format"), "pt");
  EXPECT_EQ(reader.metadata().at("source"), "test");
  EXPECT_TRUE(reader.contains("step"));
  EXPECT_FALSE(reader.contains("steps"));
}

TEST_F(Safetensors, PadTheHeaderSoThatDataBeginsAtAMultipleOfEight) {
  const std::string bytes = write_valid();
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(bytes[8], '{');
  EXPECT_EQ(bytes.size(), 8 + length + 6 * 4 + 8);
}

TEST_F(Safetensors, NameTheNearestTensorForAnAbsentOne) {
  write_valid();
  EXPECT_REFUSED(read().find("layers.0.v"), "among them layers.0.w");
}

TEST_F(Safetensors, LeaveNoFileWithoutCommit) {
  { SafetensorsWriter writer(path(), {{"a", ElementType::u8, {1}, {}}}); }
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(Safetensors, RefuseToWriteANameTwiceOrAShapeThatOverflows) {
  const TensorEntry one{"a", ElementType::u8, {1}, {}};
  EXPECT_REFUSED(SafetensorsWriter(path(), {one, one}), "found a twice");
  const TensorEntry metadata{"__metadata__", ElementType::u8, {1}, {}};
  EXPECT_REFUSED(SafetensorsWriter(path(), {metadata}), "twice");
  const TensorEntry huge{"h", ElementType::f64, {int64_t{1} << 40, int64_t{1} << 40}, {}};
  EXPECT_REFUSED(SafetensorsWriter(path(), {huge}), "int64");
  EXPECT_REFUSED(huge.bytes(), "int64");
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(Safetensors, TreatTheWrongNumberOfBytesAsABug) {
  SafetensorsWriter writer(path(), {{"a", ElementType::i16, {2}, {}}});
  EXPECT_THROW(writer.commit(), InternalError);
  EXPECT_THROW(writer.write(bytes_of(std::vector<int16_t>{1})), InternalError);
  writer.write(bytes_of(std::vector<int16_t>{1, 2}));
  EXPECT_THROW(writer.write({}), InternalError);
  writer.commit();
  EXPECT_EQ(read().find("a").bytes(), 4);
}

TEST_F(Safetensors, ReadEveryElementType) {
  const std::vector<std::pair<std::string, int>> types = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                                          {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},   {"BOOL", 1}};
  for (const auto& [name, size] : types) {
    put(R"({"a":{"dtype":")" + name + R"(","shape":[1],"data_offsets":[0,)" + std::to_string(size) + "]}}",
        std::string(static_cast<size_t>(size), 'x'));
    EXPECT_EQ(element_type_name(read().find("a").type), name);
  }
}

TEST_F(Safetensors, ListTensorsInTheOrderOfTheirDataAndAcceptUnalignedOnes) {
  put(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[1,5]},"b":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})",
      "xyyyy");
  const SafetensorsReader reader = read();
  EXPECT_EQ(reader.entries()[0].name, "b");
  EXPECT_EQ(reader.entries()[1].name, "a");
}

TEST_F(Safetensors, RefuseAHeaderThatIsNoWellFormedOne) {
  put_bytes("short");
  EXPECT_REFUSED(read(), "found only 5 bytes");
  put_bytes("");
  EXPECT_REFUSED(read(), "found only 0 bytes");
  put("{\"a\":");
  EXPECT_REFUSED(read(), "expected a header in JSON");
  put("[]");
  EXPECT_REFUSED(read(), "expected a header that is a JSON object; found array");
  put("");
  EXPECT_REFUSED(read(), "expected a header in JSON");
  put("{\"a\xFF\":{}}");
  EXPECT_REFUSED(read(), "expected a header in JSON");
  put(std::string(100000, '['));
  EXPECT_REFUSED(read(), "expected a header that is a JSON object; found array");
  put(R"({"a":{"shape":)" + std::string(100000, '['));
  EXPECT_REFUSED(read(), "deeper nesting");
  put(R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", "x");
  EXPECT_REFUSED(read(), "deeper nesting");
  put(R"({"__metadata__":{"format":1}})");
  EXPECT_REFUSED(read(), "to be text; found number");
  put(R"({"__metadata__":[]})");
  EXPECT_REFUSED(read(), "an object of texts");
}

TEST_F(Safetensors, RefuseAHeaderLengthAbove100MBOrBeyondTheFile) {
  std::string bytes = file_bytes("{}", "");
  const uint64_t lengths[] = {100'000'001, UINT64_MAX, UINT64_MAX - 7};
  for (const uint64_t length : lengths) {
    std::memcpy(bytes.data(), &length, sizeof length);
    put_bytes(bytes);
    EXPECT_REFUSED(read(), "at most 100000000 bytes");
  }
  const uint64_t beyond = 3;
  std::memcpy(bytes.data(), &beyond, sizeof beyond);
  put_bytes(bytes);
  EXPECT_REFUSED(read(), "cut short");
}

TEST_F(Safetensors, RefuseNamesGivenTwice) {
  const std::string one = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  put("{" + one + "," + one + "}", "x");
  EXPECT_REFUSED(read(), "found \"a\" twice");
  put(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x");
  EXPECT_REFUSED(read(), "found \"dtype\" twice");
  put(R"({"__metadata__":{"a":"1","a":"2"}})");
  EXPECT_REFUSED(read(), "found \"a\" twice");
  put(R"({"__metadata__":{},"__metadata__":{}})");
  EXPECT_REFUSED(read(), "found \"__metadata__\" twice");
}

TEST_F(Safetensors, RefuseATensorWhoseDescriptionIsIncompleteOrWrong) {
  const auto put_one = [&](const std::string& description) { put("{\"a\":" + description + "}", "xxxx"); };
  put_one(R"({"dtype":"F32","shape":[1]})");
  EXPECT_REFUSED(read(), "exactly dtype, shape and data_offsets");
  put_one(R"({"dtype":"F32","shape":[1],"data_offsets":[0,4],"more":1})");
  EXPECT_REFUSED(read(), "exactly dtype, shape and data_offsets");
  put_one("7");
  EXPECT_REFUSED(read(), "exactly dtype, shape and data_offsets");
  put_one(R"({"dtype":"F31","shape":[1],"data_offsets":[0,4]})");
  EXPECT_REFUSED(read(), "found \"F31\"");
  put_one(R"({"dtype":1,"shape":[1],"data_offsets":[0,4]})");
  EXPECT_REFUSED(read(), "expected dtype to be text");
  for (const char* size : {"-1", "1.0", "\"1\"", "null", "9223372036854775808", "1e30"}) {
    put_one(R"({"dtype":"F32","shape":[)" + std::string(size) + R"(],"data_offsets":[0,4]})");
    EXPECT_REFUSED(read(), "whole numbers from 0");
  }
  for (const char* offsets : {"[4,0]", "[0]", "[0,2,4]", "[]"}) {
    put_one(R"({"dtype":"F32","shape":[1],"data_offsets":)" + std::string(offsets) + "}");
    EXPECT_REFUSED(read(), "[begin, end]");
  }
}

TEST_F(Safetensors, RefuseShapesThatDoNotMatchTheirBytes) {
  put(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "xxxx");
  EXPECT_REFUSED(read(), "expected 8 bytes for F32 [2]; found 4");
  // 2^62 * 4 * 4 is 0 modulo 2^64.
  put(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", "");
  EXPECT_REFUSED(read(), "found 0;");
  put(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4,0],"data_offsets":[0,0]}})", "");
  EXPECT_EQ(read().find("a").bytes(), 0);
}

TEST_F(Safetensors, RefuseHolesOverlapsAndLeftovers) {
  const auto put_two = [&](const std::string& a, const std::string& b, const std::string& data) {
    put(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)" + a + R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" +
            b + "}}",
        data);
  };
  put_two("[0,2]", "[3,5]", "xxxxx");
  EXPECT_REFUSED(read(), "there is a gap");
  put_two("[0,2]", "[1,3]", "xxx");
  EXPECT_REFUSED(read(), "they overlap");
  put_two("[1,3]", "[3,5]", "xxxxx");
  EXPECT_REFUSED(read(), "there is a gap");
  put_two("[0,2]", "[2,4]", "xxxxx");
  EXPECT_REFUSED(read(), "found 1 bytes after it");
  put_two("[0,2]", "[2,4]", "xxx");
  EXPECT_REFUSED(read(), "end by byte 3");
  put_two("[0,2]", "[2,9223372036854775807]", "xxxx");
  EXPECT_REFUSED(read(), "end by byte 4");
  put("{}", "x");
  EXPECT_REFUSED(read(), "found 1 bytes after it");
}

TEST_F(Safetensors, AcceptAFileWithoutTensors) {
  put("{}");
  EXPECT_TRUE(read().entries().empty());
}

TEST_F(Safetensors, RefuseEveryTruncation) {
  const std::string bytes = write_valid();
  for (size_t size = 0; size < bytes.size(); ++size) {
    put_bytes(bytes.substr(0, size));
    EXPECT_NE(message_of([&] { read(); }), "") << size;
  }
}

TEST_F(Safetensors, RefuseOrAcceptMutatedBytesButNeverReadOutsideTheFile) {
  const std::string bytes = write_valid();
  Random random(1);
  int refused = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string mutated = bytes;
    for (uint64_t change = random.below(4) + 1; change > 0; --change) {
      const size_t at = random.below(mutated.size());
      // Digits and punctuation get further into the parser than random bytes.
      static constexpr std::string_view kLikely = "0123456789[]{},:\"-";
      mutated[at] = random.below(2) ? kLikely[random.below(kLikely.size())] : static_cast<char>(random.below(256));
    }
    if (random.below(4) == 0) mutated.resize(random.below(mutated.size() + 1));
    put_bytes(mutated);
    const bool good = message_of([&] {
                        const SafetensorsReader reader = read();
                        uint64_t sum = 0;
                        for (const TensorEntry& entry : reader.entries()) {
                          EXPECT_EQ(entry.bytes(), static_cast<int64_t>(entry.data.size()));
                          for (const std::byte byte : entry.data) sum += static_cast<uint64_t>(byte);
                        }
                        EXPECT_LT(sum, 256 * mutated.size());
                      }).empty();
    refused += !good;
  }
  EXPECT_GT(refused, 300);
  EXPECT_LT(refused, 1000);
}

}  // namespace
}  // namespace prism
