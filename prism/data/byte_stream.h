// The bytes of a file or of standard input. Files in .gz, .xz or .zst format, recognised by first bytes, are unpacked.
//
//   ByteStream stream("novels.txt.xz");                     // "-" is standard input
//   while (size_t count = stream.read(buffer, sizeof buffer)) ...
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace prism {

/// Which files are unpacked: all that start like one of the three formats, or only those whose names end like it too.
enum class Unpack { by_content, by_name };

class ByteStream {
 public:
  /// @param cancelled  if not null, another thread may set it, and read() then stops waiting.
  /// @throws InputError if the file cannot be opened, or if its name says that it is packed and it is not.
  explicit ByteStream(const std::string& path, Unpack unpack = Unpack::by_content,
                      const std::atomic<bool>* cancelled = nullptr);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Reads up to `size` bytes; returns 0 only at the end.
  /// @throws InputError for a packed stream that is damaged or cut short; FailedError if SIGINT or SIGTERM arrives
  ///         (core/stop.h) or `cancelled` is set while it waits for more.
  size_t read(char* out, size_t size);

  /// Bytes taken from the (packed) file so far, for progress relative to its size.
  int64_t consumed() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// `name` without .gz, .xz or .zst at the end.
std::string without_packed_ending(const std::string& name);

}  // namespace prism
