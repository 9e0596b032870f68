#include "prism/tokenizer/normalize/nfc.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <cstdlib>

#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

/// The whole text through the library.
std::string whole_nfc(const std::string& text) {
  utf8proc_uint8_t* composed = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  std::string result(reinterpret_cast<const char*>(composed), static_cast<size_t>(length));
  std::free(composed);
  return result;
}

TEST(Nfc, NormalizesRunsAsTheWholeText) {
  Random random(9);
  const std::vector<std::string> pool = {"a",      "e",      "\u0301", "\u0323", "\u0344", "é",      "\u1100", "\u1161",
                                         "\u11A8", "\uAC00", "\u0958", "\u212B", "\u09C7", "\u09BE", "灯",     " "};
  int changed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (uint64_t i = random.below(12); i > 0; --i)
      text += random.below(6) == 0 ? utf8(random_code_point(random)) : pool[random.below(pool.size())];
    const std::string expected = whole_nfc(text);
    ASSERT_EQ(to_nfc(text), expected) << text;
    changed += expected != text;
  }
  EXPECT_GT(changed, 5000);
}

TEST(Nfc, LeavesEveryOtherCharacterAlone) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const std::string text = utf8(code);
    ASSERT_EQ(to_nfc(text), whole_nfc(text)) << code;
  }
}

TEST(Nfc, OrdersAMegabyteOfMarksInAboutLinearTime) {
  std::string text = "a";
  for (int i = 0; i < (1 << 17); ++i) text += "\u0301\u0323";
  const std::string normal = to_nfc(text);
  EXPECT_TRUE(normal.starts_with("\u1EA1\u0323"));  // the first mark below composes
  EXPECT_TRUE(normal.ends_with("\u0301\u0301"));
}

TEST(Nfc, ComposesAndOrdersMarks) {
  EXPECT_EQ(to_nfc(""), "");
  EXPECT_EQ(to_nfc("e\u0301te\u0301"), "été");
  EXPECT_EQ(to_nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(to_nfc("\u1100\u1161\u11A8x"), "\uAC01x");
}

}  // namespace
}  // namespace prism
