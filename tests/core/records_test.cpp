#include "prism/core/records.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>

#include "prism/core/files.h"
#include "tests/core/child_process.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

TEST(Records, AreReadAsTheyWereWritten) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "records.jsonl";
  const std::vector<Json> records = {{{"kind", "train"}, {"step", 10}, {"loss", 4.25}}, {{"text", "a\nb\"\xC3\xA9"}}};
  {
    RecordWriter writer(path);
    for (const auto& record : records) writer.write(record);
  }
  EXPECT_EQ(read_records(path), records);
  EXPECT_EQ(read_file(path), "{\"kind\":\"train\",\"step\":10,\"loss\":4.25}\n{\"text\":\"a\\nb\\\"\xC3\xA9\"}\n");
}

TEST(Records, AreOnTheDiskAsSoonAsTheyAreWritten) {
  const TemporaryFolder folder;
  RecordWriter writer(folder.path() / "r");
  writer.write({{"step", 1}});
  EXPECT_EQ(read_records(folder.path() / "r").size(), 1u);
}

TEST(Records, WithTextThatIsNotUtf8AreWrittenWithAReplacement) {
  const TemporaryFolder folder;
  RecordWriter(folder.path() / "r").write({{"text", "a\xFFz"}});
  EXPECT_EQ(read_records(folder.path() / "r").at(0)["text"], "a\xEF\xBF\xBDz");
}

TEST(Records, LeaveOutALastLineThatWasCut) {
  const TemporaryFolder folder;
  write_file(folder.path() / "r", "{\"step\":1}\n\n{\"step\":2}\n{\"st");
  const auto records = read_records(folder.path() / "r");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1]["step"], 2);
  write_file(folder.path() / "r", "{\"step\":1}");
  EXPECT_TRUE(read_records(folder.path() / "r").empty());
  write_file(folder.path() / "r", "");
  EXPECT_TRUE(read_records(folder.path() / "r").empty());
}

TEST(Records, NameTheLineThatIsDamaged) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "r";
  const auto message = [&](const char* text) -> std::string {
    write_file(path, text);
    try {
      read_records(path);
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message("{\"step\":1}\n\n{\"step\":}\n{\"step\":4}\n"),
            "[json] expected JSON in " + path.string() + ", line 3; found a fault at byte 9 of 9; correct it.");
  EXPECT_EQ(message("{\"step\":1}\n[1, 2]\n"),
            "[records] " + path.string() +
                ", line 2: expected an object; found array; restore the file, or remove the line.");
  EXPECT_NE(message("{\"step\":1} {\"step\":2}\n").find("line 1;"), std::string::npos);
}

TEST(Records, OfAMissingFileAreAnError) {
  EXPECT_THROW(read_records("/nonexistent/records.jsonl"), InputError);
}

TEST(RecordWriter, CutsTheFileToWhatACheckpointRecorded) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "r";
  int64_t kept = 0;
  {
    RecordWriter writer(path);
    writer.write({{"step", 1}});
    kept = writer.sync();
    writer.write({{"step", 2}});
    EXPECT_GT(writer.sync(), kept);
  }
  RecordWriter writer(path, kept);
  EXPECT_EQ(writer.sync(), kept);
  writer.write({{"step", 20}});
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":20}\n");
  RecordWriter(path, 0).write({{"step", 0}});
  EXPECT_EQ(read_file(path), "{\"step\":0}\n");
}

TEST(RecordWriter, GoesOnAfterTheLastWholeLine) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "r";
  write_file(path, "{\"step\":1}\n{\"st");
  RecordWriter(path).write({{"step", 2}});
  EXPECT_EQ(read_file(path), "{\"step\":1}\n{\"step\":2}\n");
}

TEST(RecordWriter, RefusesAFileThatIsShorterThanTheCheckpointSays) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "r";
  write_file(path, "{\"step\":1}\n");
  try {
    const RecordWriter writer(path, 12);
    FAIL() << "a file that lost records was accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "[records] " + path.string() +
            ": expected at least 12 bytes, as the checkpoint recorded; found 11; restore the file or start a new run.");
  }
  EXPECT_EQ(read_file(path), "{\"step\":1}\n");
}

TEST(RecordWriter, OnAFullDiskFailsAndTheRecordsBeforeStayReadable) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "r";
  ChildProcess child([&](const auto&) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    RecordWriter writer(path);
    for (int step = 0; step < 1000; ++step) {
      try {
        writer.write({{"step", step}});
      } catch (const FailedError&) {
        ::_exit(0);
      }
    }
    ::_exit(2);
  });
  EXPECT_EQ(child.wait(), 0);
  const auto records = read_records(path);
  // 10 lines of 11 bytes and 74 of 12 are 998 bytes.
  ASSERT_EQ(records.size(), 84u);
  EXPECT_EQ(records.back()["step"], 83);
}

TEST(RecordWriter, InAMissingFolderFails) {
  EXPECT_THROW(RecordWriter("/nonexistent/records.jsonl"), FailedError);
}

}  // namespace
}  // namespace prism
