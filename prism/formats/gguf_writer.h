// Writes GGUF files of version 3.
//
//   GgufWriter writer("out.gguf", {{"general.architecture", "llama"}, {"llama.block_count", uint32_t{30}}}, tensors);
//   for (...) writer.write(bytes);
//   writer.commit();
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prism/core/files.h"
#include "prism/formats/gguf.h"
#include "prism/formats/gguf_metadata.h"

namespace prism {

/// ggml refuses files with longer names.
constexpr size_t kMaxGgufNameBytes = 63;

/// Keys in the order in which they are written.
using GgufPairs = std::vector<std::pair<std::string, GgufValue>>;

/// Writes one file, tensor by tensor in the given order, under a temporary name until commit().
class GgufWriter {
 public:
  /// @param pairs    a `general.alignment` among them decides the alignment; it must be a uint32.
  /// @param tensors  names, types, shapes; `data` is ignored.
  /// @throws InputError for duplicate keys or names, keys and names that are too long, an alignment that is not a power
  ///         of two, more than four dimensions, rows that the block does not divide and sizes that overflow.
  GgufWriter(const std::filesystem::path& path, const GgufPairs& pairs, const std::vector<GgufTensor>& tensors);

  /// Writes the bytes of the next tensor and zeros up to the next multiple of the alignment.
  /// @throws InternalError if the number of bytes differs from the tensor's.
  void write(std::span<const std::byte> data);
  /// @throws InternalError if a tensor has not been written.
  void commit();

 private:
  struct Part {
    std::string name;
    int64_t bytes = 0;
  };

  AtomicFile file_;
  int64_t alignment_;
  std::vector<Part> parts_;
  size_t next_ = 0;
};

}  // namespace prism
