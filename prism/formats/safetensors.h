// safetensors containers as bytes: names, dtypes, shapes, data. Independent of models and of torch.
//
//   SafetensorsReader reader("model.safetensors");
//   const TensorEntry& entry = reader.find("model.norm.weight");   // entry.data is a span into the mapped file
//   SafetensorsWriter writer("out.safetensors", entries);  for (...) writer.write(bytes);  writer.commit();
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prism/core/files.h"
#include "prism/core/mapped_file.h"

namespace prism {

enum class ElementType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

/// "F32", "BF16", ...
std::string_view element_type_name(ElementType type);
/// The type with this name; std::nullopt if there is none.
std::optional<ElementType> find_element_type(std::string_view name);
/// The names of all types.
std::vector<std::string> element_type_names();
int64_t element_bytes(ElementType type);

struct TensorEntry {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  ///< set by the reader only; may be unaligned
  /// Product of the shape times the element size. @throws InputError if it does not fit into int64.
  int64_t bytes() const;
};

/// One mapped file. The constructor checks all of it.
class SafetensorsReader {
 public:
  /// @throws InputError for a malformed header, offsets with gaps or overlaps, sizes that do not match shapes, a file
  ///         that is cut short or has extra bytes at the end.
  explicit SafetensorsReader(const std::filesystem::path& path);
  /// Reads a file that is in memory, which has to outlive the reader. @param name  the file's name in messages.
  SafetensorsReader(std::span<const std::byte> bytes, const std::string& name);

  /// All entries, in the order of their data in the file.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool contains(const std::string& name) const;
  /// @throws InputError naming the file and the nearest existing name.
  const TensorEntry& find(const std::string& name) const;
  const std::filesystem::path& path() const { return path_; }
  /// See MappedFile::check_whole().
  void check_whole() const { file_.check_whole(); }

 private:
  void read(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  MappedFile file_;
  std::vector<TensorEntry> entries_;
  std::unordered_map<std::string, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

/// Writes one file, tensor by tensor in the given order, under a temporary name until commit().
class SafetensorsWriter {
 public:
  /// @param entries   names, types, shapes; `data` is ignored.
  /// @param metadata  `"format": "pt"` is added, since transformers requires it.
  /// @throws InputError for duplicate names, a shape whose size overflows, or a header above the format's 100 MB.
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorEntry>& entries,
                    std::map<std::string, std::string> metadata = {});

  /// Writes the bytes of the next tensor. @throws InternalError if their number differs from the entry's.
  void write(std::span<const std::byte> data);
  /// @throws InternalError if a tensor has not been written.
  void commit();

 private:
  AtomicFile file_;
  std::vector<TensorEntry> entries_;
  size_t next_ = 0;
};

}  // namespace prism
