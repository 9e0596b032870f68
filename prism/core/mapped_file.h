// Files mapped for reading: weights and tokens, which are too large to copy.
//
//   const MappedFile file("model.safetensors");   file.bytes()
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace prism {

struct MappedRegion;

/// A file mapped for reading; empty files map to an empty span.
class MappedFile {
 public:
  MappedFile() = default;
  /// @throws InputError if it cannot be opened or mapped, or is not a regular file.
  explicit MappedFile(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const;
  /// Call it after reading. @throws FailedError if another program has shortened the file. Missing bytes of its last
  /// page read as zeros; explain_shortened_files() handles missing pages.
  void check_whole() const;

 private:
  std::shared_ptr<const MappedRegion> region_;  ///< null if the file is empty
};

/// From now on, if a mapped file that another process has shortened is read, the process ends with exit status 1 and a
/// message that names the file, not with SIGBUS. For main().
void explain_shortened_files();

}  // namespace prism
