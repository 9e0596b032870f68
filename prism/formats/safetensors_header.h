// Reads the JSON header of a safetensors file in one pass; time and memory grow linearly with its length.
//
//   const SafetensorsHeader header = parse_safetensors_header(text, data, "model.safetensors");
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prism/formats/safetensors.h"

namespace prism {

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  ///< in the order of the header, with their data
  std::map<std::string, std::string> metadata;
};

/// Product of the shape times the element size; std::nullopt if a dimension is negative or the product overflows int64.
std::optional<int64_t> tensor_bytes(const std::vector<int64_t>& shape, ElementType type);

/// The key of the header's metadata. No tensor may have this name.
constexpr const char* kMetadataKey = "__metadata__";

/// @param text  the header without its length field.
/// @param data  the bytes after the header; the entries' offsets are relative to their start.
/// @param file  the file's name in messages.
/// @throws InputError for text that is not JSON, an entry without exactly dtype, shape and data_offsets, a shape that
///         does not match its bytes, or data outside `data`. Does not check for duplicate names or gaps.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::span<const std::byte> data,
                                           const std::string& file);

}  // namespace prism
