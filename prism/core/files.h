// Files that are either whole or absent: temporary name, fsync, rename; locks between processes.
//
//   AtomicFile file(folder / "model.safetensors");  file.write(bytes);  file.commit();
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prism {

/// An open file descriptor, closed on every way out; -1 is none.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  int get() const { return value_; }
  void close();

 private:
  int value_;
};

/// Opens a regular file for reading. Never waits, whatever has the name.
/// @param size      if given, receives the file's size in bytes, which files of /proc give as 0.
/// @param for_pipes what helps whoever names a pipe, e.g. ", or -".
/// @throws InputError if it cannot be opened, with the system's reason; for folders, pipes, devices and sockets.
Descriptor open_regular(const std::filesystem::path& path, size_t* size = nullptr, std::string_view for_pipes = "");

/// Opens a regular file for writing and makes it if it is absent. Never waits.
/// @param flags  beside O_WRONLY or O_RDWR and O_CREAT, e.g. O_APPEND or O_NOFOLLOW.
/// @throws FailedError naming `operation` with the system's reason; InputError for folders, pipes, devices and sockets.
Descriptor open_output(const std::filesystem::path& path, int flags, std::string_view operation);

/// The file's bytes. @throws InputError as open_regular, or for more than kMostBytesRead; FailedError if another
/// program makes the file shorter meanwhile.
std::string read_file(const std::filesystem::path& path);

/// Standard input to its end, whatever it is. @throws InputError if it cannot be read or for more than kMostBytesRead.
std::string read_standard_input();

/// What is read whole (texts of people, JSON, tokenizers) is smaller than this; weights and tokens are mapped.
constexpr size_t kMostBytesRead = size_t{1} << 28;

/// Throws what read_file() throws for the system's error `code`.
[[noreturn]] void fail_read(const std::filesystem::path& path, int code);
/// Throws what read_file() throws for a file that ended before the bytes it had when it was opened.
[[noreturn]] void fail_shortened(const std::filesystem::path& path, size_t expected, size_t found);
/// Throws that `path` could not be written: the system's reason and what helps. @param operation  e.g. "write".
[[noreturn]] void fail_write(const std::filesystem::path& path, int code, std::string_view operation = "write");

/// Writes all of `bytes` to `path`, atomically. @throws FailedError (disk full, not writable): `path` is as before.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Before long work: that `outputs` can become files. Empty names are none. Links are followed.
/// @param inputs  that must stay as they are.
/// @throws InputError naming `operation` for one name twice, an input, a folder, a device, or a place in a folder that
///         does not exist.
void check_outputs(const std::string& operation, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs);

/// Deletes what writers of `path` left that were killed. Only for who holds the folder's lock.
void remove_temporaries(const std::filesystem::path& path);
/// Whether `file` is what such a writer left.
bool is_temporary_of(const std::filesystem::path& file, const std::filesystem::path& path);

/// Makes the folder and its parents.
/// @throws InputError if a file is in its way; FailedError with the system's reason.
void make_folder(const std::filesystem::path& path);

/// A folder for results that may never come: makes it and its parents; destroyed, it removes again what it made and is
/// still empty.
class MadeFolder {
 public:
  /// @throws as make_folder.
  explicit MadeFolder(std::filesystem::path path);
  ~MadeFolder();
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

  /// Whether the folder was not there before.
  bool is_new() const { return made_ > 0; }

 private:
  std::filesystem::path path_;
  int made_ = 0;  ///< the folder itself, its parent, ... that were not there
};

/// Flushes a folder's entries (after a rename) to the disk.
void sync_folder(const std::filesystem::path& path);

/// A file under a temporary name beside its final one until commit(). Destroyed uncommitted, it leaves nothing.
class AtomicFile {
 public:
  /// @param path  a link is followed: what it names is replaced.
  /// @throws InputError for folders, devices and pipes; FailedError if the temporary file cannot be made.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. @throws FailedError when the disk is full.
  void write(const void* data, size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  /// Overwrites bytes already written, for headers that are known last.
  void write_at(uint64_t offset, const void* data, size_t bytes);
  /// fsync, rename to the final name, fsync the folder.
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  Descriptor file_;
};

/// Exclusive lock on `folder` (its file `.lock`), held until destruction and dropped by the system if the process dies.
class FolderLock {
 public:
  /// @throws FailedError if another process holds it: names that process. InputError if `.lock` is a link or no file.
  FolderLock(const std::filesystem::path& folder, std::string_view operation);

 private:
  Descriptor file_;
};

}  // namespace prism
