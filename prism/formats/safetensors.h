// safetensors containers as bytes: names, dtypes, shapes, data. Knows nothing of models or of torch.
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
/// The type of that name; nothing for another name.
std::optional<ElementType> find_element_type(std::string_view name);
/// All of them.
std::vector<std::string> element_type_names();
int64_t element_bytes(ElementType type);

struct TensorEntry {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<int64_t> shape;
  std::span<const std::byte> data;  ///< reading only; may be unaligned
  /// Product of the shape times the element's size. @throws InputError if int64 cannot hold it.
  int64_t bytes() const;
};

/// One mapped file, checked whole before anything is trusted.
class SafetensorsReader {
 public:
  /// @throws InputError for a header that is not well-formed, offsets with holes or overlaps, sizes that do not match
  ///         shapes, a file cut short or with bytes left over.
  explicit SafetensorsReader(const std::filesystem::path& path);

  /// In the order of their data in the file.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool contains(const std::string& name) const;
  /// @throws InputError naming the file and the nearest name.
  const TensorEntry& find(const std::string& name) const;
  const std::filesystem::path& path() const { return path_; }
  /// As MappedFile's.
  void check_whole() const { file_.check_whole(); }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::vector<TensorEntry> entries_;
  std::unordered_map<std::string, size_t> index_;
  std::map<std::string, std::string> metadata_;
};

/// Writes one file, tensor after tensor in the order given, under a temporary name until commit().
class SafetensorsWriter {
 public:
  /// @param entries   names, types, shapes; `data` is ignored.
  /// @param metadata  `"format": "pt"` is added, transformers wants it.
  /// @throws InputError for a name given twice, a shape whose bytes overflow, a header above the format's 100 MB.
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorEntry>& entries,
                    std::map<std::string, std::string> metadata = {});

  /// The next tensor's bytes. @throws InternalError unless their number is that of the entry.
  void write(std::span<const std::byte> data);
  /// @throws InternalError unless every tensor was written.
  void commit();

 private:
  AtomicFile file_;
  std::vector<TensorEntry> entries_;
  size_t next_ = 0;
};

}  // namespace prism
