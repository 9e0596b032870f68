// GGUF containers as bytes: metadata, and tensors in ggml's block types. Independent of models and of torch.
//
//   const GgufReader reader("model.gguf");
//   const std::string& architecture = reader.metadata().text("general.architecture");
//   const GgufTensor& tensor = reader.find("output_norm.weight");   // tensor.data is a span into the mapped file
//
// All numbers are little-endian. A string is its length as uint64, then its bytes.
//
//   "GGUF"  uint32 version  uint64 tensors  uint64 keys
//   for each key:     string key  uint32 type  value; an array is uint32 type  uint64 count  elements
//   for each tensor:  string name  uint32 dims  uint64 size of each, fastest first  uint32 ggml type  uint64 offset
//   zeros up to a multiple of general.alignment (32 by default), where offsets begin; the data of the tensors
//
// Source: ggml's docs/gguf.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prism/core/mapped_file.h"
#include "prism/core/numbers/block_type.h"
#include "prism/formats/gguf_metadata.h"

namespace prism {

constexpr std::string_view kGgufAlignmentKey = "general.alignment";
constexpr int64_t kGgufDefaultAlignment = 32;
constexpr size_t kMaxGgufDimensions = 4, kMaxGgufKeyBytes = 65535;

struct GgufTensor {
  std::string name;
  BlockType type = BlockType::f32;
  std::vector<int64_t> shape;       ///< slowest dimension first, as torch writes it; blocks lie along the last
  std::span<const std::byte> data;  ///< set by the reader only; aligned to general.alignment
};

/// One mapped file. The constructor checks all of it and reads the metadata. Values of tensors stay in the file. All
/// else takes more memory than it takes there: four times as much for empty strings, at most about ten times for
/// tensors without values.
class GgufReader {
 public:
  /// @throws InputError for another version than 2 and 3 (they have one layout), a big-endian file, a file that is cut
  ///         short, counts and lengths that exceed it, duplicate keys or names, arrays of arrays, a type without a
  ///         BlockType, rows that the block does not divide, sizes that overflow, and tensors that are outside the
  ///         file, misaligned or overlapping. Gaps between tensors and bytes after the last are accepted.
  explicit GgufReader(const std::filesystem::path& path);
  /// Reads a file that is in memory, which has to outlive the reader. @param name  the file's name in messages.
  GgufReader(std::span<const std::byte> bytes, const std::string& name);

  const GgufMetadata& metadata() const { return metadata_; }
  /// All tensors, in the order in which the file lists them.
  const std::vector<GgufTensor>& tensors() const { return tensors_; }
  bool contains(const std::string& name) const { return index_.contains(name); }
  /// @throws InputError naming the file and the nearest existing name.
  const GgufTensor& find(const std::string& name) const;
  const std::filesystem::path& path() const { return path_; }
  /// See MappedFile::check_whole().
  void check_whole() const { file_.check_whole(); }

 private:
  void read(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  MappedFile file_;
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
  std::unordered_map<std::string, size_t> index_;
};

}  // namespace prism
