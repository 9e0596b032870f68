#include "prism/core/text/utf8.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "prism/core/random.h"

namespace prism {
namespace {

/// UTF-8 of a code point by the table of RFC 3629. Also encodes surrogates and numbers above 0x10FFFF, which are
/// invalid.
std::string encode(uint32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

/// Length of the character at the start of `text`: decodes it, encodes the result, and returns 0 if that differs.
size_t decoded_length(std::string_view text) {
  for (size_t length = 1; length <= 4 && length <= text.size(); ++length) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
    uint32_t code = length == 1 ? byte(0) : byte(0) & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; ++i) code = code << 6 | (byte(i) & 0x3F);
    const bool scalar = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    if (scalar && encode(code) == text.substr(0, length)) return length;
  }
  return 0;
}

size_t first_invalid(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = decoded_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

std::string hex(std::string_view text) {
  std::string shown;
  for (const char c : text) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    shown += {kDigits[static_cast<uint8_t>(c) >> 4], kDigits[c & 15], ' '};
  }
  return shown;
}

TEST(Utf8, AcceptsEveryScalarValueAndNoSurrogate) {
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    ASSERT_EQ(find_invalid_utf8(encode(code)), surrogate ? 0 : std::string_view::npos) << code;
  }
  for (const uint32_t code : {0x110000u, 0x13FFFFu, 0x1FFFFFu}) EXPECT_EQ(find_invalid_utf8(encode(code)), 0u);
}

TEST(Utf8, AgreesWithADecoderOnAllShortByteStrings) {
  std::string text;
  for (int a = 0; a < 256; ++a) {
    text = {static_cast<char>(a)};
    ASSERT_EQ(find_invalid_utf8(text), first_invalid(text)) << hex(text);
    for (int b = 0; b < 256; ++b) {
      text = {static_cast<char>(a), static_cast<char>(b)};
      ASSERT_EQ(find_invalid_utf8(text), first_invalid(text)) << hex(text);
    }
  }
}

TEST(Utf8, AgreesWithADecoderWhereTheRangesOfBytesEnd) {
  // Every byte at which a range of RFC 3629 begins or ends, in all combinations of four.
  const std::vector<int> edges = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF,
                                  0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
  for (const int a : edges) {
    for (const int b : edges) {
      for (const int c : edges) {
        for (const int d : edges) {
          const std::string text = {static_cast<char>(a), static_cast<char>(b), static_cast<char>(c),
                                    static_cast<char>(d)};
          ASSERT_EQ(find_invalid_utf8(text), first_invalid(text)) << hex(text);
          ASSERT_EQ(find_invalid_utf8(text.substr(0, 3)), first_invalid(text.substr(0, 3))) << hex(text);
        }
      }
    }
  }
}

TEST(Utf8, AgreesWithADecoderOnRandomBytes) {
  Random random(1);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (uint64_t i = random.below(12); i > 0; --i) {
      // Half complete characters, half arbitrary bytes.
      text += random.below(2) == 0 ? encode(static_cast<uint32_t>(random.below(0xD800)))
                                   : std::string(1, static_cast<char>(random.below(256)));
    }
    ASSERT_EQ(find_invalid_utf8(text), first_invalid(text)) << hex(text);
    ASSERT_EQ(find_invalid_utf8(replace_invalid_utf8(text)), std::string_view::npos) << hex(text);
  }
}

TEST(Utf8, IsCutOnlyBetweenCharacters) {
  // Latin, Greek, Hebrew, Devanagari, Han, an emoji with a modifier, the last code point.
  const std::vector<uint32_t> codes = {'a', 0xE9, 0x3B1, 0x5D0, 0x915, 0x6F22, 0x1F44D, 0x1F3FD, 0x10FFFF, 'z'};
  std::string text;
  std::vector<size_t> ends = {0};
  for (const uint32_t code : codes) {
    text += encode(code);
    ends.push_back(text.size());
  }
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    size_t expected = 0;
    for (const size_t end : ends) expected = end <= cut ? end : expected;
    EXPECT_EQ(complete_utf8_prefix(std::string_view(text).substr(0, cut)), expected) << "cut at " << cut;
  }
}

TEST(Utf8, HoldsNothingBackThatCanNeverBecomeACharacter) {
  // No further bytes can make these valid, so a stream that waited for more would wait forever.
  for (const std::string_view text :
       {"a\xFF", "a\x80", "a\xC0", "a\xE0\x80", "a\xED\xA0", "a\xF4\x90", "a\xF5", "\x80\x80\x80\x80"})
    EXPECT_EQ(complete_utf8_prefix(text), text.size()) << hex(text);
  for (const std::string_view text : {"a\xC2", "a\xE0\xA0", "a\xF0\x9F\x91"})
    EXPECT_EQ(complete_utf8_prefix(text), 1u) << hex(text);
}

TEST(Utf8, ShowsAReplacementForEachByteThatIsWrong) {
  EXPECT_EQ(replace_invalid_utf8("caf\xC3\xA9"), "caf\xC3\xA9");
  EXPECT_EQ(replace_invalid_utf8("a\xFFz"), "a\xEF\xBF\xBDz");
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82"), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(replace_invalid_utf8(""), "");
}

}  // namespace
}  // namespace prism
