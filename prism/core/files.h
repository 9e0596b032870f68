// Files that are either complete or absent (temporary name, fsync, rename), and locks between processes.
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

/// An open file descriptor, closed on destruction; -1 if there is none.
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

/// Opens a regular file for reading. Never blocks, even if the path is a pipe.
/// @param size      if given, receives the file's size in bytes; files in /proc report 0.
/// @param for_pipes ending of the message if `path` is a pipe, e.g. ", or -".
/// @throws InputError if it cannot be opened, with the system's reason, or if it is a folder, pipe, device or socket.
Descriptor open_regular(const std::filesystem::path& path, size_t* size = nullptr, std::string_view for_pipes = "");

/// Returns true if a file, folder or anything else has this name. Unlike std::filesystem::exists(), a link to nothing
/// counts, so that a broken link to an optional file is an error and not an absent file.
/// @throws std::filesystem::filesystem_error if its folder cannot be reached.
bool is_there(const std::filesystem::path& path);

/// The last name of a path that may end with a slash: "a/b/" gives "b".
std::string last_name(const std::filesystem::path& path);

/// Opens a regular file for writing, and creates it if it does not exist. Never blocks.
/// @param flags  O_WRONLY or O_RDWR, with any others such as O_APPEND or O_NOFOLLOW; O_CREAT is added.
/// @throws WriteError naming `operation` with the system's reason; InputError for folders, pipes, devices and sockets.
Descriptor open_output(const std::filesystem::path& path, int flags, std::string_view operation);

/// Writes all of `bytes` at the file's position. @param path  for messages. @throws WriteError naming `operation`.
void append(const Descriptor& file, std::string_view bytes, const std::filesystem::path& path,
            std::string_view operation);

/// The contents of a file. @throws InputError like open_regular(), or for more than kMostBytesRead; FailedError if
/// another program shortens the file during the read.
std::string read_file(const std::filesystem::path& path);

/// Reads standard input to its end. @throws InputError if it cannot be read, or for more than kMostBytesRead.
std::string read_standard_input();

/// Limit in bytes for files that are read whole (text, JSON, tokenizers). Weights and tokens are mapped instead.
constexpr size_t kMostBytesRead = size_t{1} << 28;

/// Throws the error of read_file() for the system's error `code`.
[[noreturn]] void fail_read(const std::filesystem::path& path, int code);
/// Throws the error of read_file() for a file that became shorter after it was opened.
[[noreturn]] void fail_shortened(const std::filesystem::path& path, size_t expected, size_t found);
/// Throws a WriteError for `path` with the system's reason and a remedy. @param operation  e.g. "write".
[[noreturn]] void fail_write(const std::filesystem::path& path, int code, std::string_view operation = "write");

/// Writes all of `bytes` to `path` atomically. @throws WriteError (disk full, not writable) and leaves `path`
/// unchanged.
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Checks, before long work, that the `outputs` can be written as files; makes and removes a temporary file beside
/// each. Empty names are ignored. Links are followed.
/// @param inputs  files that must not be overwritten.
/// @throws InputError naming `operation` if an output occurs twice, is an input, a folder or a device, or lies in a
///         folder that does not exist; WriteError if no file can be made there.
void check_outputs(const std::string& operation, const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs);

/// Deletes the temporary files that killed writers of `path` left. The caller must hold the folder's lock.
void remove_temporaries(const std::filesystem::path& path);
/// Returns true if `file` is a temporary file of an AtomicFile for `path`.
bool is_temporary_of(const std::filesystem::path& file, const std::filesystem::path& path);

/// Creates the folder and its parents.
/// @throws InputError if a file is in the way; FailedError with the system's reason.
void make_folder(const std::filesystem::path& path);

/// A folder for results that may not be written after all. Creates it and its parents; the destructor removes those it
/// created that are still empty.
class MadeFolder {
 public:
  /// @throws like make_folder().
  explicit MadeFolder(std::filesystem::path path);
  ~MadeFolder();
  MadeFolder(MadeFolder&& other) noexcept : path_(std::move(other.path_)), made_(std::exchange(other.made_, 0)) {}

 private:
  std::filesystem::path path_;
  int made_ = 0;  ///< number of folders created, counted upwards from the folder itself
};

/// Flushes a folder's entries to disk, e.g. after a rename.
void sync_folder(const std::filesystem::path& path);

/// A folder that has a temporary name beside its final one until commit(). Without commit() the destructor deletes it.
class NewFolder {
 public:
  /// @throws InputError if there is something at `path` already; FailedError if the folder cannot be made.
  explicit NewFolder(const std::filesystem::path& path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// The temporary folder, to write files into.
  const std::filesystem::path& temporary() const { return temporary_; }
  /// Renames the folder to its final name. @throws FailedError with the system's reason.
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  MadeFolder parent_;
};

/// A file that has a temporary name in the same folder until commit(). Without commit() the destructor deletes it.
class AtomicFile {
 public:
  /// @param path  a link is followed: its target is replaced.
  /// @throws InputError for folders, devices and pipes; WriteError if the temporary file cannot be created.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Appends. @throws WriteError if the disk is full.
  void write(const void* data, size_t bytes);
  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  /// Overwrites bytes already written, for headers that are known only at the end.
  void write_at(uint64_t offset, const void* data, size_t bytes);
  /// Calls fsync, renames to the final name, and syncs the folder.
  void commit();

 private:
  std::filesystem::path path_, temporary_;
  Descriptor file_;
};

/// Exclusive lock on `folder` (its file `.lock`), held until destruction. The system drops it if the process dies. The
/// destructor removes `.lock` from a folder that holds nothing else.
class FolderLock {
 public:
  /// @throws FailedError naming the process that holds the lock; InputError if `.lock` is a link or not a regular file.
  FolderLock(const std::filesystem::path& folder, std::string_view operation);
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept = default;

 private:
  void release();

  std::filesystem::path path_;
  Descriptor file_;
};

}  // namespace prism
