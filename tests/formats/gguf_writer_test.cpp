#include "prism/formats/gguf_writer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "prism/core/error.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/formats/gguf_bytes.h"

namespace prism {
namespace {

class GgufFile : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "model.gguf"; }
  void write_empty(const GgufPairs& pairs, const std::vector<GgufTensor>& tensors) {
    GgufWriter writer(path(), pairs, tensors);
  }

  TemporaryFolder folder_;
};

TEST_F(GgufFile, HoldsTheBytesThatTheFormatAsksFor) {
  GgufWriter writer(path(), {{"a", std::string("xyz")}, {"b", GgufArray(std::vector<int16_t>{-1, 2})}},
                    {{"w", BlockType::f32, {2, 3}, {}}, {"q", BlockType::q8_0, {32}, {}}});
  const std::string first(24, '1'), second(34, '2');
  writer.write(span_of(first));
  writer.write(span_of(second));
  writer.commit();
  const std::string expected = GgufBytes(2, 2)
                                   .key("a", 8)
                                   .text("xyz")
                                   .key("b", 9)
                                   .number(3u)
                                   .number(uint64_t{2})
                                   .number(int16_t{-1})
                                   .number(int16_t{2})
                                   .tensor("w", {3, 2}, 0, 0)
                                   .tensor("q", {32}, 8, 32)
                                   .pad(32)
                                   .raw(first)
                                   .pad(32)
                                   .raw(second)
                                   .pad(32)
                                   .bytes();
  EXPECT_EQ(read_file(path()), expected);
}

TEST_F(GgufFile, SurvivesARoundTripWithValuesOfEveryType) {
  const GgufPairs pairs = {{"u8", uint8_t{255}},
                           {"i8", int8_t{-128}},
                           {"u16", uint16_t{65535}},
                           {"i16", int16_t{-32768}},
                           {"u32", uint32_t{4294967295}},
                           {"i32", int32_t{-5}},
                           {"f32", 1.5f},
                           {"bool", true},
                           {"string", std::string("a\0\xFF", 3)},
                           {"u64", UINT64_MAX},
                           {"i64", INT64_MIN},
                           {"f64", 0.1},
                           {"all u8", GgufArray(std::vector<uint8_t>{1, 2})},
                           {"all i8", GgufArray(std::vector<int8_t>{-1})},
                           {"all u16", GgufArray(std::vector<uint16_t>{1})},
                           {"all i16", GgufArray(std::vector<int16_t>{})},
                           {"all u32", GgufArray(std::vector<uint32_t>{7, 8, 9})},
                           {"all i32", GgufArray(std::vector<int32_t>{-7})},
                           {"all f32", GgufArray(std::vector<float>{1, 2})},
                           {"all bool", GgufArray(std::vector<bool>{true, false, true})},
                           {"all string", GgufArray(std::vector<std::string>{"", "a", "bc"})},
                           {"all u64", GgufArray(std::vector<uint64_t>{1})},
                           {"all i64", GgufArray(std::vector<int64_t>{-1})},
                           {"all f64", GgufArray(std::vector<double>{0.25})}};
  GgufWriter writer(path(), pairs, {});
  writer.commit();
  const GgufReader reader(path());
  EXPECT_EQ(reader.metadata().values(), GgufMetadata::Values(pairs.begin(), pairs.end()));
}

TEST_F(GgufFile, AlignsTensorsAsItsMetadataSays) {
  GgufWriter writer(
      path(), {{std::string(kGgufAlignmentKey), uint32_t{128}}},
      {{"a", BlockType::bf16, {1}, {}}, {"empty", BlockType::f32, {0, 2}, {}}, {"b", BlockType::f32, {}, {}}});
  writer.write(span_of("aa"));
  writer.write({});
  writer.write(span_of("bbbb"));
  writer.commit();
  const GgufReader reader(path());
  EXPECT_EQ(reader.find("b").data.data() - reader.find("a").data.data(), 128);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(reader.find("b").data.data()) % 128, 0u);
  EXPECT_EQ(std::memcmp(reader.find("b").data.data(), "bbbb", 4), 0);
  EXPECT_EQ(read_file(path()).size() % 128, 0u);
}

TEST_F(GgufFile, IsNotLeftWithoutCommit) {
  write_empty({}, {{"a", BlockType::f32, {1}, {}}});
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(GgufFile, IsRefusedIfItsHeaderCannotBeWritten) {
  const GgufTensor one{"a", BlockType::f32, {1}, {}};
  EXPECT_REFUSED(write_empty({{"k", true}, {"k", false}}, {}), "expected every key once; found k twice; remove one");
  EXPECT_REFUSED(write_empty({{std::string(65536, 'k'), true}}, {}),
                 "at most 65535 bytes; found one of 65536; shorten");
  EXPECT_REFUSED(write_empty({}, {one, one}), "expected every tensor once; found a twice; rename one");
  EXPECT_REFUSED(write_empty({}, {{std::string(64, 'n'), BlockType::f32, {1}, {}}}),
                 "expected names of tensors of at most 63 bytes; found 64; shorten it");
  write_empty({}, {{std::string(63, 'n'), BlockType::f32, {1}, {}}});
  EXPECT_REFUSED(write_empty({}, {{"a", BlockType::f32, {1, 1, 1, 1, 1}, {}}}),
                 "a: expected at most 4 dimensions; found 5; reshape it");
  EXPECT_REFUSED(write_empty({}, {{"a", BlockType::q4_k, {2, 128}, {}}}),
                 "a: expected rows of whole Q4_K blocks (256 values each) and a size that int64 can count; found the "
                 "shape [2,128]; choose another type");
  const GgufTensor huge{"a", BlockType::f32, {int64_t{1} << 60}, {}},
      other{"b", BlockType::f32, {int64_t{1} << 60}, {}};
  EXPECT_REFUSED(write_empty({}, {huge, other}),
                 "b: expected a file whose bytes int64 can count; found more; write fewer");
  const std::string alignment(kGgufAlignmentKey);
  EXPECT_REFUSED(write_empty({{alignment, uint32_t{24}}}, {}),
                 "expected general.alignment to be a uint32 and a power of two; found 24; leave it out to get 32");
  EXPECT_REFUSED(write_empty({{alignment, uint64_t{32}}}, {}), "a power of two; found uint64; leave it out");
  EXPECT_TRUE(folder_.names().empty());
}

TEST_F(GgufFile, TreatsTheWrongNumberOfBytesAsABug) {
  GgufWriter writer(path(), {}, {{"a", BlockType::f16, {2}, {}}});
  EXPECT_THROW(writer.commit(), InternalError);
  EXPECT_THROW(writer.write(span_of("abc")), InternalError);
  writer.write(span_of("abcd"));
  EXPECT_THROW(writer.write({}), InternalError);
  writer.commit();
  EXPECT_EQ(GgufReader(path()).find("a").data.size(), 4u);
}

}  // namespace
}  // namespace prism
