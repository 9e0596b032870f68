#include "prism/data/pieces.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/data/text_source.h"
#include "prism/tokenizer/tokenizer.h"
#include "tests/core/large_data.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

TEST(Pieces, AreCutOnlyWhereTheIdsStayTheSame) {
  const auto data = data_folder();
  if (!data) GTEST_SKIP() << "PRISM_DATA is not set: no tokenizers to compare with";
  const fs::path base = *data;
  // White space of all kinds, punctuation next to newlines, contractions, digits, letters beyond ASCII.
  Random random(11);
  const std::vector<std::string> words = {"word",
                                          "it's",
                                          "DON'T",
                                          "1234567",
                                          "...",
                                          "\"\n",
                                          "\n",
                                          "\n\n",
                                          "\r\n",
                                          "\t",
                                          "  ",
                                          "\xC2\xA0",
                                          "\xE3\x80\x80",
                                          "\xD0\xB6\xD1\x83\xD0\xBA",
                                          "\xE4\xB8\xAD\xE6\x96\x87",
                                          "e\xCC\x81",
                                          "!?",
                                          ".\n"};
  std::string text;
  while (text.size() < 60'000) text += (random.below(3) ? " " : "") + words[random.below(words.size())];
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "a.txt";
  write_file(file, text);
  for (const char* name : {"gpt2", "llama3"}) {
    TextOptions options;
    options.format = "txt";
    TextSource json({(base / "tokenizers" / name / "tokenizer.json.xz").string()}, options);
    std::string spelled;
    while (auto piece = json.next()) spelled += piece->text;
    const Tokenizer tokenizer = Tokenizer::from_json(spelled, name);
    const std::vector<int32_t> whole = tokenizer.encode(text, SpecialTokens::as_text);
    options.piece_bytes = 64;
    TextSource source({file.string()}, options);
    std::vector<int32_t> joined;
    int pieces = 0;
    while (auto piece = source.next()) {
      const std::vector<int32_t> ids = tokenizer.encode(piece->text, SpecialTokens::as_text);
      joined.insert(joined.end(), ids.begin(), ids.end());
      ++pieces;
    }
    EXPECT_GT(pieces, 900) << name;
    EXPECT_EQ(joined, whole) << name;
  }
}

}  // namespace
}  // namespace prism
