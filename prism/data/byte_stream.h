// The bytes of one file or of standard input, unpacked when its first bytes say .gz, .xz or .zst.
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

/// What is unpacked: any file that begins like one of the three, or only one whose name ends like it too.
enum class Unpack { by_content, by_name };

class ByteStream {
 public:
  /// @param cancelled  if not null, another thread may set it: read() then waits no longer.
  /// @throws InputError if the file cannot be opened, or is named as packed and is not.
  explicit ByteStream(const std::string& path, Unpack unpack = Unpack::by_content,
                      const std::atomic<bool>* cancelled = nullptr);
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Up to `size` bytes; 0 only at the end.
  /// @throws InputError for a packed stream that is damaged or cut short, FailedError when SIGINT or SIGTERM comes
  ///         (core/stop.h) or `cancelled` is set while it waits for more.
  size_t read(char* out, size_t size);

  /// Bytes taken from the file itself so far: what progress over its size counts.
  int64_t consumed() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// `name` without .gz, .xz or .zst at its end.
std::string without_packed_ending(const std::string& name);

}  // namespace prism
