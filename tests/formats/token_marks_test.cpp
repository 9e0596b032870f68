#include "prism/formats/token_marks.h"

#include <gtest/gtest.h>

#include <vector>

#include "prism/core/files.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

TEST(TokenMarks, ReadsWhatWasWritten) {
  const TemporaryFolder folder;
  const auto path = marks_file(folder.path() / "train_000000.bin");
  EXPECT_EQ(path.filename(), "train_000000.marks");
  TokenMarksWriter writer(path);
  writer.write(std::vector<uint8_t>{kOpeningMark, 0});
  EXPECT_FALSE(is_there(path));
  writer.write(std::vector<uint8_t>{kAssistantMark});
  writer.commit();
  const TokenMarks marks(path, 3);
  EXPECT_EQ(marks[0], kOpeningMark);
  EXPECT_EQ(marks[1], 0);
  EXPECT_EQ(marks[2], kAssistantMark);
}

TEST(TokenMarks, RefusesOtherFilesAndOtherNumbers) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "train_000000.marks";
  EXPECT_REFUSED(TokenMarks(path, 2), "expected the marks of a shard in");
  for (const std::string& other : {std::string(), std::string("short"), std::string(64, 'x')}) {
    write_file(path, other);
    EXPECT_REFUSED(TokenMarks(path, 2), "expected magic");
  }
  TokenMarksWriter writer(path);
  writer.write(std::vector<uint8_t>{1, 0});
  writer.commit();
  EXPECT_NO_THROW(TokenMarks(path, 2));
  EXPECT_REFUSED(TokenMarks(path, 3), "expected 3 marks, one for each token");
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_REFUSED(TokenMarks(path, 2), "expected 2 marks");
}

}  // namespace
}  // namespace prism
