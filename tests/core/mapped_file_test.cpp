#include "prism/core/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

TEST(MappedFile, ShowsTheBytesOfTheFile) {
  const TemporaryFolder folder;
  std::string bytes(70001, 'x');
  bytes[70000] = 'y';
  write_file(folder.path() / "a", bytes);
  const MappedFile file(folder.path() / "a");
  ASSERT_EQ(file.bytes().size(), bytes.size());
  EXPECT_EQ(std::memcmp(file.bytes().data(), bytes.data(), bytes.size()), 0);
}

TEST(MappedFile, OfAnEmptyFileIsEmpty) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "");
  EXPECT_TRUE(MappedFile(folder.path() / "a").bytes().empty());
  EXPECT_TRUE(MappedFile().bytes().empty());
}

TEST(MappedFile, MovesItsBytes) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "first");
  write_file(folder.path() / "b", "second one");
  MappedFile first(folder.path() / "a");
  MappedFile moved(std::move(first));
  EXPECT_EQ(moved.bytes().size(), 5u);
  moved = MappedFile(folder.path() / "b");
  ASSERT_EQ(moved.bytes().size(), 10u);
  EXPECT_EQ(std::memcmp(moved.bytes().data(), "second one", 10), 0);
}

TEST(MappedFile, OutlivesTheNameOfItsFile) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "kept");
  const MappedFile file(folder.path() / "a");
  write_file(folder.path() / "a", "replaced");
  EXPECT_EQ(std::memcmp(file.bytes().data(), "kept", 4), 0);
}

TEST(MappedFile, NamesAMissingFileAndAFolder) {
  const TemporaryFolder folder;
  EXPECT_NE(message_of<InputError>([&] { MappedFile(folder.path() / "none"); }).find("No such file"),
            std::string::npos);
  EXPECT_NE(message_of<InputError>([&] { MappedFile{folder.path()}; }).find("a folder"), std::string::npos);
}

/// Runs `work` in a child process and returns its exit status, or 128 + signal if a signal ended it. Its standard error
/// goes to `log`.
template <class Work>
int status_of(const fs::path& log, Work work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open(log.c_str(), O_WRONLY | O_CREAT, 0666), STDERR_FILENO);
    explain_shortened_files();
    work();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(MappedFile, ThatIsShortenedWhileItIsMappedEndsTheProcessWithASentence) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a", log = folder.path() / "log";
  constexpr size_t kSize = 1 << 20;
  write_file(path, std::string(kSize, 'x'));
  const int status = status_of(log, [&] {
    const MappedFile other(path), file(path);
    fs::resize_file(path, 10);
    if (file.bytes()[kSize - 1] == std::byte{'x'}) ::_exit(3);
  });
  EXPECT_EQ(status, 1);
  EXPECT_EQ(read_file(log), "[read] expected 1048576 bytes in " + path.string() +
                                "; found fewer: another program made the file shorter while it was in use; restore it "
                                "and run again.\n");
}

TEST(MappedFile, NoticesThatItsLastPageWasCut) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a";
  write_file(path, std::string(5000, 'x'));
  const MappedFile file(path);
  file.check_whole();
  fs::resize_file(path, 4999);
  EXPECT_EQ(file.bytes()[4999], std::byte{0}) << "which nothing else shows";
  EXPECT_NE(message_of<FailedError>([&] { file.check_whole(); }).find("expected 5000 bytes"), std::string::npos);
  MappedFile().check_whole();
}

TEST(MappedFile, ThatIsGoneExplainsNoOtherBusError) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a", log = folder.path() / "log";
  write_file(path, std::string(1 << 20, 'x'));
  const int status = status_of(log, [&] {
    { const MappedFile file(path); }
    std::raise(SIGBUS);
    std::raise(SIGBUS);  // the first one restores the default action
  });
  EXPECT_EQ(status, 128 + SIGBUS);
  EXPECT_EQ(read_file(log), "");
}

}  // namespace
}  // namespace prism
