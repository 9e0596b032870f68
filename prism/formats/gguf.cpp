#include "prism/formats/gguf.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/formats/gguf_cursor.h"

namespace prism {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF files are read as little-endian");

constexpr std::string_view kGgufMagic = "GGUF";
// The shortest pair is an empty key, a type and one byte; the shortest tensor has an empty name and no dimensions.
constexpr uint64_t kLeastPairBytes = 8 + 4 + 1, kLeastTensorBytes = 8 + 4 + 4 + 8;

void check_start(GgufCursor& cursor) {
  const auto bytes = cursor.take(std::min<uint64_t>(cursor.left(), kGgufMagic.size()));
  const std::string_view magic(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  PRISM_CHECK(magic == kGgufMagic, "gguf", "{}: expected a GGUF file, which begins with GGUF; found {}; name another.",
              cursor.where(), bytes.empty() ? "an empty file" : "\"" + short_line(magic, 4) + "\"");
  const auto version = cursor.number<uint32_t>();
  const uint32_t swapped = __builtin_bswap32(version);
  PRISM_CHECK(swapped == 0 || swapped > 0xFFFF, "gguf",
              "{}: expected a little-endian file; found a big-endian one of version {}; convert the model again for "
              "little-endian machines.",
              cursor.where(), swapped);
  PRISM_CHECK(version == 2 || version == 3, "gguf",
              "{}: expected a file of version 2 or 3; found version {}; convert the model again with a current "
              "converter.",
              cursor.where(), version);
}

bool read_flag(GgufCursor& cursor) {
  const auto byte = cursor.number<uint8_t>();
  PRISM_CHECK(byte <= 1, "gguf", "{}: expected a bool, 0 or 1; found {}; the file is damaged, copy it again.",
              cursor.where(), byte);
  return byte == 1;
}

template <class Element>
std::vector<Element> read_elements(GgufCursor& cursor, uint64_t count) {
  constexpr bool is_text = std::is_same_v<Element, std::string>;
  cursor.check_count(count, is_text ? sizeof(uint64_t) : sizeof(Element), "elements");
  std::vector<Element> elements;
  if constexpr (is_text) {
    elements.reserve(count);
    for (uint64_t i = 0; i < count; ++i) elements.emplace_back(cursor.text());
  } else if constexpr (std::is_same_v<Element, bool>) {
    elements.reserve(count);
    for (uint64_t i = 0; i < count; ++i) elements.push_back(read_flag(cursor));
  } else {
    elements.resize(count);
    const auto bytes = cursor.take(count * sizeof(Element));
    if (count > 0) std::memcpy(elements.data(), bytes.data(), bytes.size());
  }
  return elements;
}

/// The alternative of `Variant` with this index, as `read.operator()<Alternative>()` returns it.
template <class Variant, size_t index = 0>
Variant read_alternative(size_t wanted, const auto& read) {
  if constexpr (index < std::variant_size_v<Variant>) {
    using Alternative = std::variant_alternative_t<index, Variant>;
    if (wanted == index) return Variant(std::in_place_index<index>, read.template operator()<Alternative>());
    return read_alternative<Variant, index + 1>(wanted, read);
  } else {
    throw InternalError("gguf", fmt::format("expected an index below {}; found {}", index, wanted));
  }
}

uint32_t read_value_type(GgufCursor& cursor) {
  constexpr auto types = static_cast<uint32_t>(std::variant_size_v<GgufValue>);
  const auto type = cursor.number<uint32_t>();
  PRISM_CHECK(type < types, "gguf",
              "{}: expected a value of a type from 0 to {}; found {}; the file is damaged, copy it again.",
              cursor.where(), types - 1, type);
  return type;
}

GgufArray read_array(GgufCursor& cursor) {
  const uint32_t type = read_value_type(cursor);
  PRISM_CHECK(type != kGgufArrayType, "gguf",
              "{}: expected an array of numbers, bools or strings; found an array of arrays; convert the model again "
              "without this key.",
              cursor.where());
  const auto count = cursor.number<uint64_t>();
  return read_alternative<GgufArray>(type < kGgufArrayType ? type : type - 1, [&]<class Elements>() {
    return read_elements<typename Elements::value_type>(cursor, count);
  });
}

GgufValue read_value(GgufCursor& cursor) {
  return read_alternative<GgufValue>(read_value_type(cursor), [&]<class Value>() {
    if constexpr (std::is_same_v<Value, GgufArray>)
      return read_array(cursor);
    else if constexpr (std::is_same_v<Value, std::string>)
      return std::string(cursor.text());
    else if constexpr (std::is_same_v<Value, bool>)
      return read_flag(cursor);
    else
      return cursor.number<Value>();
  });
}

GgufMetadata::Values read_pairs(GgufCursor& cursor, uint64_t count, const std::string& file) {
  GgufMetadata::Values values;
  for (uint64_t i = 0; i < count; ++i) {
    cursor.enter({});
    const std::string_view key = cursor.text();
    cursor.enter(key);
    PRISM_CHECK(key.size() <= kMaxGgufKeyBytes, "gguf",
                "{}: expected keys of at most {} bytes; found one of {}; the file is damaged, copy it again.", file,
                kMaxGgufKeyBytes, key.size());
    PRISM_CHECK(values.emplace(key, read_value(cursor)).second, "gguf",
                "{}: expected every key once; found it twice; the file is damaged, copy it again.", cursor.where());
  }
  return values;
}

/// A tensor with the place that the file gives it, before it is checked.
struct PlacedTensor {
  GgufTensor tensor;
  uint64_t offset = 0;
  int64_t bytes = 0;
};

PlacedTensor read_tensor_info(GgufCursor& cursor) {
  PlacedTensor placed;
  GgufTensor& tensor = placed.tensor;
  cursor.enter({});
  const std::string_view name = cursor.text();
  cursor.enter(name);
  tensor.name = name;
  const auto dimensions = cursor.number<uint32_t>();
  PRISM_CHECK(dimensions <= kMaxGgufDimensions, "gguf",
              "{}: expected at most {} dimensions; found {}; the file is damaged, copy it again.", cursor.where(),
              kMaxGgufDimensions, dimensions);
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto size = cursor.number<uint64_t>();
    PRISM_CHECK(size <= INT64_MAX, "gguf",
                "{}: expected dimensions of at most {}; found {}; the file is damaged, copy it again.", cursor.where(),
                INT64_MAX, size);
    tensor.shape.insert(tensor.shape.begin(), static_cast<int64_t>(size));
  }
  tensor.type = find_block_type(cursor.number<uint32_t>(), "gguf", cursor.where());
  placed.offset = cursor.number<uint64_t>();
  const auto bytes = block_tensor_bytes(tensor.type, tensor.shape);
  const BlockLayout& layout = block_layout(tensor.type);
  PRISM_CHECK(bytes, "gguf",
              "{}: expected rows of whole {} blocks ({} values each) and a size that int64 can count; found the shape "
              "[{}]; the file is damaged, copy it again.",
              cursor.where(), layout.name, layout.elements, fmt::join(tensor.shape, ","));
  placed.bytes = *bytes;
  return placed;
}

/// Checks that no two tensors share a byte.
void check_overlaps(const std::vector<PlacedTensor>& all, const std::string& file) {
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(all[a].offset, a) < std::pair(all[b].offset, b); });
  const PlacedTensor* before = nullptr;
  for (const size_t i : order) {
    if (all[i].bytes == 0) continue;
    if (before != nullptr) {
      const uint64_t end = before->offset + static_cast<uint64_t>(before->bytes);
      PRISM_CHECK(
          all[i].offset >= end, "gguf",
          "{}: expected {} to begin at byte {} of the data or later, after {}; found byte {}: they overlap; the "
          "file is damaged, copy it again.",
          file, short_line(all[i].tensor.name, 80), end, short_line(before->tensor.name, 80), all[i].offset);
    }
    before = &all[i];
  }
}

int64_t find_alignment(const GgufMetadata& metadata, const std::string& file) {
  const int64_t alignment = metadata.find_integer(kGgufAlignmentKey).value_or(kGgufDefaultAlignment);
  PRISM_CHECK(alignment > 0 && std::has_single_bit(static_cast<uint64_t>(alignment)), "gguf",
              "{}: expected {} to be a power of two; found {}; convert the file again.", file, kGgufAlignmentKey,
              alignment);
  return alignment;
}

}  // namespace

GgufReader::GgufReader(const std::filesystem::path& path) : path_(path), file_(path) {
  read(file_.bytes());
}

GgufReader::GgufReader(std::span<const std::byte> bytes, const std::string& name) : path_(name) {
  read(bytes);
}

void GgufReader::read(std::span<const std::byte> bytes) {
  const std::string file = path_.string();
  GgufCursor cursor(bytes, file);
  check_start(cursor);
  const uint64_t count = cursor.count(kLeastTensorBytes, "tensors"), keys = cursor.count(kLeastPairBytes, "keys");
  metadata_ = GgufMetadata(file, read_pairs(cursor, keys, file));
  const int64_t alignment = find_alignment(metadata_, file);
  cursor.enter({});
  cursor.check_count(count, kLeastTensorBytes, "tensors");
  std::vector<PlacedTensor> placed;
  placed.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    placed.push_back(read_tensor_info(cursor));
    PRISM_CHECK(index_.emplace(placed.back().tensor.name, i).second, "gguf",
                "{}: expected every tensor once; found it twice; the file is damaged, copy it again.", cursor.where());
  }
  const auto mask = static_cast<uint64_t>(alignment) - 1;
  const uint64_t start = std::min<uint64_t>((cursor.position() + mask) & ~mask, bytes.size());
  const auto data = bytes.subspan(start);
  tensors_.reserve(count);
  for (PlacedTensor& each : placed) {
    cursor.enter(each.tensor.name);
    PRISM_CHECK((each.offset & mask) == 0, "gguf",
                "{}: expected its data at a multiple of {} bytes; found byte {}; the file is damaged, copy it again.",
                cursor.where(), alignment, each.offset);
    const auto size = static_cast<uint64_t>(each.bytes);
    PRISM_CHECK(
        each.offset <= data.size() && size <= data.size() - each.offset, "gguf",
        "{}: expected {} bytes at byte {} of the data; found {} bytes of data; the file is cut short or damaged, "
        "restore it.",
        cursor.where(), size, each.offset, data.size());
    each.tensor.data = data.subspan(each.offset, size);
  }
  check_overlaps(placed, file);
  for (PlacedTensor& each : placed) tensors_.push_back(std::move(each.tensor));
}

const GgufTensor& GgufReader::find(const std::string& name) const {
  if (auto row = index_.find(name); row != index_.end()) return tensors_[row->second];
  std::vector<std::string> names;
  for (const GgufTensor& tensor : tensors_) names.push_back(tensor.name);
  const std::string near = nearest_name(name, names);
  throw InputError(
      "gguf",
      fmt::format("{}: expected a tensor {}; found {} others{}; name another file, or convert this "
                  "one again.",
                  path_.string(), name, names.size(), near.empty() ? "" : ", among them " + short_line(near, 80)));
}

}  // namespace prism
