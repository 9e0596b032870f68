// Files mapped for reading: weights and tokens, which are larger than what is worth a copy.
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
  /// For after reading: @throws FailedError if another program has made the file shorter. Bytes that are missing from
  /// its last page read as zeros; pages that are missing are explain_shortened_files()'s.
  void check_whole() const;

 private:
  std::shared_ptr<const MappedRegion> region_;  ///< null: empty
};

/// From now on a process that reads a mapped file after another one has made it shorter ends with exit status 1 and
/// one sentence that names the file, instead of by SIGBUS. For main().
void explain_shortened_files();

}  // namespace prism
