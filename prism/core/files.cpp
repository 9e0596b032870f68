#include "prism/core/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTemporaryEnding = ".tmp";

std::string reason(int code) {
  return std::strerror(code);
}

/// Names what a path with this mode is, if it is not a regular file.
const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// If `path` could not be opened as `file`, checks the path itself: for sockets, and for pipes without a reader, the
/// system's reason would not help. @throws InputError unless it is a regular file.
void check_regular(const fs::path& path, const Descriptor& file, struct stat* status, std::string_view for_pipes = "") {
  const int code = errno;
  const int looked = file.get() >= 0 ? ::fstat(file.get(), status) : ::stat(path.c_str(), status);
  if (looked == 0 && !S_ISREG(status->st_mode))
    throw InputError("files", fmt::format("expected a file at {}; found {}; name a regular file{}.", path.string(),
                                          kind_of(status->st_mode), S_ISFIFO(status->st_mode) ? for_pipes : ""));
  errno = code;
}

/// The path that a file of that name resolves to; links are followed.
fs::path check_target(const std::string& operation, const fs::path& path) {
  std::error_code unreachable;
  const fs::file_status status = fs::status(path, unreachable);
  PRISM_CHECK(unreachable != std::errc::too_many_symbolic_link_levels, operation,
              "expected a file or a free name at {}; found a link that leads to itself; choose another.",
              path.string());
  // A rename would replace a device or pipe, or the link to standard output, with a plain file.
  bool is_device = fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
  fs::path target = path;  // weakly_canonical() would stop at a link whose target does not exist yet
  for (;;) {
    const auto folder = fs::weakly_canonical(fs::absolute(target).parent_path(), unreachable);
    is_device = is_device || folder.string().starts_with("/proc/");  // /dev/stdout is a link to /proc/self/fd/1
    if (!fs::is_symlink(fs::symlink_status(target, unreachable))) break;
    target = target.parent_path() / fs::read_symlink(target, unreachable);
  }
  PRISM_CHECK(!is_device && !fs::is_directory(status), operation,
              "expected a file or a free name at {}; found {}; choose another.", path.string(),
              is_device ? "a device or pipe" : "a folder");
  return target;
}

/// Writes all of `bytes` with `write(next, size)`, which may write fewer bytes than asked and returns how many.
template <class Write>
void write_all(std::string_view bytes, const fs::path& path, std::string_view operation, const Write& write) {
  while (!bytes.empty()) {
    const ssize_t count = write(bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_write(path, count < 0 ? errno : ENOSPC, operation);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

/// Reads to the end and ignores the reported size, which is 0 for pipes and /proc.
std::string read_to_end(int file, const fs::path& path) {
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_read(path, errno);
    if (count == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(count));
    PRISM_CHECK(bytes.size() <= kMostBytesRead, "read",
                "{}: expected at most {} bytes; found more; name a smaller file.", path.string(), kMostBytesRead);
  }
}

}  // namespace

void fail_read(const fs::path& path, int code) {
  throw InputError("read",
                   fmt::format("expected a readable file at {}; found: {}; name another, or change its permissions.",
                               path.string(), reason(code)));
}

void fail_shortened(const fs::path& path, size_t expected, size_t found) {
  throw FailedError("read", fmt::format("expected {} bytes in {}; found {}: another program made the file shorter "
                                        "while it was read; restore it and run again.",
                                        expected, path.string(), found));
}

void fail_write(const fs::path& path, int code, std::string_view operation) {
  const bool full = code == ENOSPC || code == EDQUOT || code == EFBIG;
  throw WriteError(operation, fmt::format("could not write {}: {}; {}.", path.string(), reason(code),
                                          full                   ? "free some space (nothing that was there is lost)"
                                          : code == ENAMETOOLONG ? "choose a shorter name"
                                                                 : "choose another place or change its permissions"));
}

void Descriptor::close() {
  if (value_ >= 0) ::close(value_);
  value_ = -1;
}

Descriptor open_regular(const fs::path& path, size_t* size, std::string_view for_pipes) {
  // O_NONBLOCK: opening a pipe would wait for a writer.
  Descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat status {};
  check_regular(path, file, &status, for_pipes);
  if (file.get() < 0) fail_read(path, errno);
  if (size != nullptr) *size = static_cast<size_t>(status.st_size);
  return file;
}

bool is_there(const fs::path& path) {
  return fs::exists(fs::symlink_status(path));
}

std::string last_name(const fs::path& path) {
  const auto normal = path.lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

Descriptor open_output(const fs::path& path, int flags, std::string_view operation) {
  constexpr mode_t kEveryone = 0666;
  Descriptor file(::open(path.c_str(), flags | O_CREAT | O_NONBLOCK | O_CLOEXEC, kEveryone));
  struct stat status {};
  check_regular(path, file, &status);
  if (file.get() < 0) fail_write(path, errno, operation);
  return file;
}

void append(const Descriptor& file, std::string_view bytes, const fs::path& path, std::string_view operation) {
  write_all(bytes, path, operation, [&](const char* next, size_t size) { return ::write(file.get(), next, size); });
}

std::string read_file(const fs::path& path) {
  size_t size = 0;
  const Descriptor file = open_regular(path, &size);
  std::string bytes = read_to_end(file.get(), path);
  if (bytes.size() < size) fail_shortened(path, size, bytes.size());
  return bytes;
}

std::string read_standard_input() {
  return read_to_end(STDIN_FILENO, "standard input");
}

void write_file(const fs::path& path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void check_outputs(const std::string& operation, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs) {
  std::set<fs::path> taken;
  std::error_code unreachable;
  for (const auto& input : inputs)
    if (!input.empty()) taken.insert(fs::weakly_canonical(fs::absolute(input), unreachable));
  for (const auto& output : outputs) {
    if (output.empty()) continue;
    const fs::path place = check_target(operation, output);
    const fs::path folder = place.has_parent_path() ? place.parent_path() : fs::path(".");
    const bool is_file = fs::exists(folder, unreachable);
    PRISM_CHECK(fs::is_directory(folder, unreachable), operation, "expected a folder for {}; found {} {}; {}.", output,
                is_file ? "the file" : "none at", folder.string(),
                is_file ? "choose another place" : "make it, or choose another place");
    PRISM_CHECK(taken.insert(fs::weakly_canonical(fs::absolute(place), unreachable)).second, operation,
                "expected distinct output files that are not inputs; found {} twice; rename one.", output);
    try {
      const AtomicFile probe(place);
    } catch (const WriteError& error) {
      throw WriteError(operation, error.sentence());
    }
  }
}

void make_folder(const fs::path& path) {
  std::error_code code;
  for (fs::path at = path; !at.empty(); at = at.has_relative_path() ? at.parent_path() : fs::path()) {
    const fs::file_type type = fs::status(at, code).type();
    const bool nothing = type == fs::file_type::not_found && !fs::is_symlink(fs::symlink_status(at, code));
    PRISM_CHECK(nothing || type == fs::file_type::directory || code == std::errc::permission_denied, "make_folder",
                "expected a folder or a free name at {}; found {}; choose another place.", at.string(),
                type == fs::file_type::not_found ? "a link to nothing"
                : type == fs::file_type::none    ? "a name that the system does not accept"
                : type == fs::file_type::regular ? "a file"
                                                 : "a pipe, socket or device");
  }
  code.clear();
  fs::create_directories(path, code);
  if (code)
    throw FailedError("make_folder", fmt::format("expected to make the folder {}; found: {}; choose another place.",
                                                 path.string(), code.message()));
}

bool is_temporary_of(const fs::path& file, const fs::path& path) {
  const std::string name = file.filename().string(), start = path.filename().string() + ".";
  return name.starts_with(start) && name.ends_with(kTemporaryEnding);
}

void remove_temporaries(const fs::path& path) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path.parent_path(), ignored))
    if (is_temporary_of(entry.path(), path)) fs::remove(entry.path(), ignored);
}

MadeFolder::MadeFolder(fs::path path) : path_(fs::absolute(path).lexically_normal()) {
  if (!path_.has_filename()) path_ = path_.parent_path();  // a slash at the end
  std::error_code unreachable;                             // make_folder() gives the reason
  for (fs::path at = path_; !fs::exists(at, unreachable) && !unreachable; at = at.parent_path()) ++made_;
  make_folder(path_);
}

MadeFolder::~MadeFolder() {
  std::error_code code;
  for (; made_ > 0 && fs::remove(path_, code); --made_) path_ = path_.parent_path();
}

void sync_folder(const fs::path& path) {
  const Descriptor folder(::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) fail_write(path, errno);
}

NewFolder::NewFolder(const fs::path& path)
    : path_(fs::absolute(path.has_filename() ? path : path.parent_path())), parent_(path_.parent_path()) {
  std::error_code unreachable;
  PRISM_CHECK(!fs::exists(fs::symlink_status(path_, unreachable)), "new_folder",
              "expected a free name for a new folder; found that {} exists; name another, or move it away.",
              path.string());
  temporary_ = path_;
  temporary_ += fmt::format(".{}{}", ::getpid(), kTemporaryEnding);
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);  // left from a killed process with the same id
  make_folder(temporary_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

void NewFolder::commit() {
  sync_folder(temporary_);
  if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) != 0)
    throw FailedError("new_folder", fmt::format("expected to rename a folder to {}; found: {}; choose another place.",
                                                path_.string(), reason(errno)));
  sync_folder(path_.parent_path());
}

AtomicFile::AtomicFile(fs::path path) : path_(check_target("write", path)) {
  temporary_ = path_;
  temporary_ += fmt::format(".{}{}", ::getpid(), kTemporaryEnding);
  // A file of this name is left from a killed process with the same id, or is a link to another place.
  ::unlink(temporary_.c_str());
  file_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (file_.get() < 0) fail_write(path_, errno);
}

AtomicFile::~AtomicFile() {
  if (file_.get() >= 0) ::unlink(temporary_.c_str());
}

void AtomicFile::write(const void* data, size_t bytes) {
  append(file_, {static_cast<const char*>(data), bytes}, path_, "write");
}

void AtomicFile::write_at(uint64_t offset, const void* data, size_t bytes) {
  const char* const first = static_cast<const char*>(data);
  write_all({first, bytes}, path_, "write", [&](const char* next, size_t size) {
    return ::pwrite(file_.get(), next, size, static_cast<off_t>(offset) + (next - first));
  });
}

void AtomicFile::commit() {
  if (::fsync(file_.get()) != 0) fail_write(path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write(path_, errno);
  file_.close();
  sync_folder(path_.parent_path());
}

FolderLock::FolderLock(const fs::path& folder, std::string_view operation) : path_(folder / ".lock") {
  std::error_code unreachable;
  PRISM_CHECK(!fs::is_symlink(fs::symlink_status(path_, unreachable)), operation,
              "expected {} to be a file; found a link; remove it.", path_.string());
  struct stat status {};
  while (status.st_nlink == 0) {  // its holder may have removed the file before this process locked it
    file_ = open_output(path_, O_RDWR | O_NOFOLLOW, operation);
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      throw FailedError(operation, fmt::format("expected {} to be free; found process {} working in it; wait for it, "
                                               "stop it, or choose another folder.",
                                               folder.string(), read_file(path_)));
    }
    if (::fstat(file_.get(), &status) != 0) fail_write(path_, errno, operation);
  }
  const std::string owner = std::to_string(::getpid());
  if (::ftruncate(file_.get(), 0) == 0 && ::write(file_.get(), owner.data(), owner.size()) > 0) return;
  const int code = errno;
  release();
  fail_write(path_, code, operation);
}

FolderLock::~FolderLock() {
  release();
}

void FolderLock::release() {
  if (file_.get() < 0) return;  // moved away
  std::error_code unreachable;
  fs::directory_iterator entry(path_.parent_path(), unreachable);
  const bool alone = entry != fs::directory_iterator() && entry->path() == path_ &&
                     entry.increment(unreachable) == fs::directory_iterator();
  if (alone) fs::remove(path_, unreachable);
  file_.close();
}

}  // namespace prism
