#include "prism/core/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <functional>

#include "prism/core/error.h"
#include "prism/core/mapped_file.h"
#include "tests/core/child_process.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Cycles through all byte values; longer than one read() returns.
std::string all_bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 7 + i / 256) & 0xFF);
  return bytes;
}

TEST(Files, GiveBackTheBytesWritten) {
  const TemporaryFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65536}, size_t{300001}}) {
    write_file(folder.path() / "a", all_bytes(size));
    EXPECT_EQ(read_file(folder.path() / "a"), all_bytes(size));
  }
  EXPECT_EQ(folder.names(), std::set<std::string>{"a"});
}

TEST(Files, WithoutASizeAreReadToTheirEnd) {
  // /proc reports a size of 0 bytes.
  EXPECT_NE(read_file("/proc/self/status").find("Name:"), std::string::npos);
}

TEST(Files, ThatCannotBeReadAreNamedWithTheReason) {
  const TemporaryFolder folder;
  const auto read = [&](const fs::path& path) { return message_of<InputError>([&] { read_file(path); }); };
  EXPECT_EQ(read(folder.path() / "none"),
            "[read] expected a readable file at " + (folder.path() / "none").string() +
                "; found: No such file or directory; name another, or change its permissions.");
  write_file(folder.path() / "file", "x");
  EXPECT_NE(read(folder.path() / "file" / "below").find("found: Not a directory;"), std::string::npos);
}

TEST(Files, ThatAreNotRegularAreNamedWithoutWaiting) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return folder.path() / name; };
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0666), 0);
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path("socket").string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const auto& odd : {std::pair{folder.path(), "a folder"},
                          {path("pipe"), "a pipe"},
                          {path("socket"), "a socket"},
                          {fs::path("/dev/zero"), "a device"}}) {
    const fs::path& place = odd.first;  // clang 14 captures no structured binding in a lambda
    const std::string sentence =
        fmt::format("expected a file at {}; found {}; name a regular file", place.string(), odd.second);
    EXPECT_REFUSED(read_file(place), sentence);
    EXPECT_REFUSED(MappedFile{place}, sentence);
    EXPECT_REFUSED(open_output(place, O_WRONLY, "write"), sentence);
  }
}

TEST(Files, OfWhichLessCanBeReadThanTheirSizeFail) {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a";
  EXPECT_EQ(message_of<FailedError>([&] { fail_shortened(path, 10, 4); }),
            "[read] expected 10 bytes in " + path.string() +
                "; found 4: another program made the file shorter while it was read; restore it and run again.");
}

TEST(Files, AreNotWrittenWhereThereIsNoFolder) {
  const TemporaryFolder folder;
  const std::string message = message_of<FailedError>([&] { write_file(folder.path() / "none" / "a", "x"); });
  EXPECT_NE(message.find(": No such file or directory; choose another place"), std::string::npos) << message;
}

TEST(Files, InAFolderThatIsNotWritableFailAndNameIt) {
  const TemporaryFolder folder;
  fs::permissions(folder.path(), fs::perms(0555));
  ChildProcess child([&](const auto&) {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(1);  // root may write anywhere
    const std::string message = message_of<FailedError>([&] { write_file(folder.path() / "a", "x"); });
    const std::string expected = "could not write " + (folder.path() / "a").string() +
                                 ": Permission denied; choose another place or change its permissions.";
    ::_exit(message.find(expected) == std::string::npos ? 2 : 0);
  });
  EXPECT_EQ(child.wait(), 0);
  fs::permissions(folder.path(), fs::perms::owner_all);
  EXPECT_TRUE(folder.names().empty());
}

TEST(MakeFolder, MakesParentsAndAcceptsWhatIsThere) {
  const TemporaryFolder folder;
  make_folder(folder.path() / "a" / "b");
  make_folder(folder.path() / "a" / "b");
  EXPECT_TRUE(fs::is_directory(folder.path() / "a" / "b"));
}

TEST(MakeFolder, NamesTheFileInItsWay) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "x");
  const std::string expected = (folder.path() / "a").string() + "; found a file";
  EXPECT_REFUSED(make_folder(folder.path() / "a"), expected);
  EXPECT_REFUSED(make_folder(folder.path() / "a" / "b" / "c"), expected);
  EXPECT_EQ(read_file(folder.path() / "a"), "x");
}

TEST(MadeFolder, IsRemovedWithItsNewParentsUnlessSomethingIsInIt) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "there");
  {
    const MadeFolder made(folder.path() / "there" / "a" / "b" / "");
    EXPECT_TRUE(fs::is_directory(folder.path() / "there/a/b"));
  }
  EXPECT_FALSE(fs::exists(folder.path() / "there/a"));
  { const MadeFolder found(folder.path() / "there"); }
  EXPECT_TRUE(fs::is_directory(folder.path() / "there")) << "it was there before";
  {
    const MadeFolder made(folder.path() / "there/a/b");
    write_file(folder.path() / "there/a/kept", "x");
  }
  EXPECT_FALSE(fs::exists(folder.path() / "there/a/b"));
  EXPECT_TRUE(fs::exists(folder.path() / "there/a/kept"));
}

TEST(MadeFolder, OfANameThatTheSystemRefusesGivesTheReason) {
  const TemporaryFolder folder;
  EXPECT_THROW(MadeFolder(folder.path() / std::string(300, 'a') / "b"), Error);
  fs::create_symlink("loop", folder.path() / "loop");
  EXPECT_THROW(MadeFolder(folder.path() / "loop" / "a"), Error);
}

TEST(IsThere, CountsLinksToNothing) {
  const TemporaryFolder folder;
  EXPECT_FALSE(is_there(folder.path() / "a"));
  fs::create_symlink("nothing", folder.path() / "a");
  EXPECT_TRUE(is_there(folder.path() / "a"));
  EXPECT_TRUE(is_there(folder.path()));
}

TEST(AtomicFile, LeavesNothingWhenItIsNotCommitted) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder.path() / "a");
    file.write(all_bytes(100000));
    EXPECT_EQ(folder.names().size(), 1u);
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(AtomicFile, ShowsTheOldFileUntilTheCommitAndTheNewOneAfter) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "old");
  AtomicFile file(folder.path() / "a");
  file.write("new");
  EXPECT_EQ(read_file(folder.path() / "a"), "old");
  file.commit();
  EXPECT_EQ(read_file(folder.path() / "a"), "new");
  EXPECT_EQ(folder.names(), std::set<std::string>{"a"});
}

TEST(AtomicFile, OverwritesAHeaderThatIsKnownLast) {
  const TemporaryFolder folder;
  AtomicFile file(folder.path() / "a");
  file.write("....body");
  file.write_at(0, "head", 4);
  file.write(" tail");
  file.commit();
  EXPECT_EQ(read_file(folder.path() / "a"), "headbody tail");
}

TEST(AtomicFile, OfAPlainNameLandsInTheWorkingFolder) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  write_file("a", "x");
  fs::current_path(before);
  EXPECT_EQ(read_file(folder.path() / "a"), "x");
}

TEST(AtomicFile, KeepsTheOldFileWhenItsWriterIsKilled) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "old");
  ChildProcess child([&](const auto& ready) {
    AtomicFile file(folder.path() / "a");
    file.write(all_bytes(1 << 20));
    ready();
    for (;;) file.write_at(0, "again", 5);
  });
  ASSERT_TRUE(child.wait_until_ready());
  child.kill();
  EXPECT_EQ(read_file(folder.path() / "a"), "old");
  EXPECT_EQ(folder.names().count("a"), 1u);
}

TEST(AtomicFile, OnAFullDiskFailsAndKeepsTheOldFile) {
  const TemporaryFolder folder;
  write_file(folder.path() / "a", "old");
  // With SIGXFSZ ignored, a limit on file sizes fails like a full disk.
  ChildProcess child([&](const auto&) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100000, 100000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    const std::string message = message_of<FailedError>([&] { write_file(folder.path() / "a", all_bytes(300000)); });
    if (message.find(": File too large; free some space") == std::string::npos) ::_exit(2);
    const std::string patched = message_of<FailedError>([&] {
      AtomicFile file(folder.path() / "a");
      file.write_at(99998, "body", 4);
    });
    if (patched.find("free some space") == std::string::npos) ::_exit(3);
    // A smaller file can still be written.
    write_file(folder.path() / "b", all_bytes(100000));
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(read_file(folder.path() / "a"), "old");
  EXPECT_EQ(read_file(folder.path() / "b"), all_bytes(100000));
  EXPECT_EQ(folder.names(), (std::set<std::string>{"a", "b"}));
}

TEST(AtomicFile, WritesThroughNoLinkUnderItsTemporaryName) {
  const TemporaryFolder folder, elsewhere;
  write_file(elsewhere.path() / "kept", "kept");
  const fs::path temporary = folder.path() / ("a." + std::to_string(::getpid()) + ".tmp");
  fs::create_symlink(elsewhere.path() / "kept", temporary);
  write_file(folder.path() / "a", "x");
  EXPECT_EQ(read_file(elsewhere.path() / "kept"), "kept");
  EXPECT_EQ(read_file(folder.path() / "a"), "x");
  EXPECT_EQ(folder.names(), std::set<std::string>{"a"});
}

TEST(AtomicFile, FollowsALinkToWhatIsNotThereYet) {
  const TemporaryFolder folder, elsewhere;
  fs::create_symlink(elsewhere.path() / "target", folder.path() / "one");
  fs::create_symlink("one", folder.path() / "two");
  write_file(folder.path() / "two", "x");
  EXPECT_EQ(read_file(elsewhere.path() / "target"), "x");
  EXPECT_TRUE(fs::is_symlink(folder.path() / "two"));
  fs::create_symlink(elsewhere.path() / "none" / "target", folder.path() / "three");
  EXPECT_THROW(write_file(folder.path() / "three", "x"), FailedError);
}

TEST(AtomicFile, ReplacesNoLinkToStandardOutputButWritesToMemory) {
  const TemporaryFolder folder;
  const fs::path redirected = folder.path() / "redirected";
  write_file(redirected, "x");
  const Descriptor file = open_output(redirected, O_WRONLY, "test");
  const std::string name = std::to_string(file.get());
  EXPECT_REFUSED(AtomicFile("/dev/fd/" + name), "found a device or pipe");
  EXPECT_REFUSED(AtomicFile("/proc/self/fd/" + name), "found a device or pipe");
  EXPECT_REFUSED(AtomicFile("/dev/null"), "found a device or pipe");
  fs::create_symlink("/dev/fd/" + name, folder.path() / "link");
  EXPECT_REFUSED(AtomicFile(folder.path() / "link"), "found a device or pipe");
  if (!fs::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm";
  const fs::path memory = fmt::format("/dev/shm/prism-test-{}", ::getpid());
  write_file(memory, "x");
  EXPECT_EQ(read_file(memory), "x");
  fs::remove(memory);
}

TEST(FailWrite, SaysWhatHelpsForEachReason) {
  const auto sentence = [](int code) { return message_of<FailedError>([&] { fail_write("a", code); }); };
  EXPECT_CONTAINS(sentence(ENOSPC), ": No space left on device; free some space (nothing that was there is lost).");
  EXPECT_CONTAINS(sentence(EACCES), ": Permission denied; choose another place or change its permissions.");
}

TEST(FolderLock, NamesTheProcessThatHoldsIt) {
  const TemporaryFolder folder;
  ChildProcess holder([&](const auto& ready) {
    const FolderLock lock(folder.path(), "train");
    ready();
    for (;;) ::pause();
  });
  ASSERT_TRUE(holder.wait_until_ready());
  const std::string message = message_of<FailedError>([&] { FolderLock(folder.path(), "train"); });
  EXPECT_EQ(message, "[train] expected " + folder.path().string() + " to be free; found process " +
                         std::to_string(holder.id()) +
                         " working in it; wait for it, stop it, or choose another folder.");
  // The process that was refused must not have changed the lock file.
  EXPECT_EQ(read_file(folder.path() / ".lock"), std::to_string(holder.id()));
}

TEST(FolderLock, IsFreeOnceItsHolderIsKilled) {
  const TemporaryFolder folder;
  ChildProcess holder([&](const auto& ready) {
    const FolderLock lock(folder.path(), "train");
    ready();
    for (;;) ::pause();
  });
  ASSERT_TRUE(holder.wait_until_ready());
  holder.kill();
  const FolderLock lock(folder.path(), "train");
  EXPECT_EQ(read_file(folder.path() / ".lock"), std::to_string(::getpid()));
}

TEST(FolderLock, IsFreeAfterItsScope) {
  const TemporaryFolder folder;
  { const FolderLock lock(folder.path(), "train"); }
  const FolderLock lock(folder.path(), "train");
  EXPECT_THROW(FolderLock(folder.path(), "train"), FailedError);
}

TEST(FolderLock, LeavesNothingInAFolderWithoutOtherFiles) {
  const TemporaryFolder folder;
  { const FolderLock lock(folder.path(), "train"); }
  EXPECT_TRUE(folder.names().empty());
  {
    const FolderLock lock(folder.path(), "train");
    write_file(folder.path() / "a", "x");
  }
  EXPECT_EQ(folder.names(), (std::set<std::string>{".lock", "a"}));
}

TEST(FolderLock, FollowsNoLinkAndWaitsForNoPipe) {
  const TemporaryFolder folder, elsewhere;
  const fs::path target = elsewhere.path() / "kept";
  write_file(target, "kept");
  fs::create_symlink(target, folder.path() / ".lock");
  EXPECT_REFUSED(FolderLock(folder.path(), "train"), "found a link; remove it");
  EXPECT_EQ(read_file(target), "kept");
  fs::remove(folder.path() / ".lock");
  ASSERT_EQ(::mkfifo((folder.path() / ".lock").c_str(), 0666), 0);
  EXPECT_REFUSED(FolderLock(folder.path(), "train"), "found a pipe");
}

TEST(FolderLock, NeedsTheFolder) {
  const TemporaryFolder folder;
  EXPECT_THROW(FolderLock(folder.path() / "none", "train"), FailedError);
}

}  // namespace
}  // namespace prism
