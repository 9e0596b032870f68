// The JSON header of a safetensors file, read in one pass: time and memory grow linearly with its length.
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
  std::vector<TensorEntry> entries;  ///< in the order of the header, each with its data
  std::map<std::string, std::string> metadata;
};

/// Product of the shape times the element's size; nothing when a dimension is negative or int64 does not hold it.
std::optional<int64_t> tensor_bytes(const std::vector<int64_t>& shape, ElementType type);

/// The key of the header's metadata, which no tensor may have as its name.
constexpr const char* kMetadataKey = "__metadata__";

/// @param text  the header without its length.
/// @param data  the bytes after the header, which the entries' offsets count from.
/// @param file  named in messages.
/// @throws InputError for text that is not JSON, an entry without exactly dtype, shape and data_offsets, a shape that
///         does not match its bytes, data outside `data`. Names given twice and holes are left to the caller.
SafetensorsHeader parse_safetensors_header(std::string_view text, std::span<const std::byte> data,
                                           const std::string& file);

}  // namespace prism
