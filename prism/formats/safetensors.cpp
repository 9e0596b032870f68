#include "prism/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/names.h"
#include "prism/formats/safetensors_header.h"

namespace prism {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr uint64_t kLengthBytes = 8, kMaxHeaderBytes = 100'000'000, kHeaderAlignment = 8;

struct TypeRow {
  ElementType type;
  std::string_view name;
  int64_t bytes;
};

constexpr std::array kTypes = {
    TypeRow{ElementType::f64, "F64", 8},      TypeRow{ElementType::f32, "F32", 4}, TypeRow{ElementType::f16, "F16", 2},
    TypeRow{ElementType::bf16, "BF16", 2},    TypeRow{ElementType::i64, "I64", 8}, TypeRow{ElementType::i32, "I32", 4},
    TypeRow{ElementType::i16, "I16", 2},      TypeRow{ElementType::i8, "I8", 1},   TypeRow{ElementType::u8, "U8", 1},
    TypeRow{ElementType::boolean, "BOOL", 1},
};

const TypeRow& type_row(ElementType type) {
  return *std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& row) { return row.type == type; });
}

/// Checks that the entries are contiguous and cover the buffer.
void check_tiling(const std::vector<TensorEntry>& entries, std::span<const std::byte> buffer, const std::string& file) {
  const std::byte* next = buffer.data();
  for (const TensorEntry& entry : entries) {
    PRISM_CHECK(entry.data.data() == next, "safetensors",
                "{}: expected {} to begin at byte {} of the data, after the previous tensor; found byte {}: {}; the "
                "file is damaged, copy it again.",
                file, entry.name, next - buffer.data(), entry.data.data() - buffer.data(),
                entry.data.data() < next ? "they overlap" : "there is a gap");
    next += entry.data.size();
  }
  const auto left = buffer.data() + buffer.size() - next;
  PRISM_CHECK(left == 0, "safetensors",
              "{}: expected the file to end after its last tensor; found {} bytes after it; copy it again.", file,
              left);
}

Json header_json(const std::vector<TensorEntry>& entries, std::map<std::string, std::string> metadata) {
  metadata.emplace("format", "pt");
  Json header = Json::object();
  header[kMetadataKey] = Json(metadata);
  // Appends to the underlying list, since operator[] of an ordered object searches it from the front each time.
  auto& members = header.get_ref<Json::object_t&>();
  std::set<std::string> names = {kMetadataKey};
  int64_t offset = 0;
  for (const TensorEntry& entry : entries) {
    PRISM_CHECK(names.insert(entry.name).second, "safetensors",
                "expected every tensor name once; found {} twice; "
                "rename one.",
                entry.name);
    const auto bytes = tensor_bytes(entry.shape, entry.type);
    int64_t end = 0;
    PRISM_CHECK(bytes && !__builtin_add_overflow(offset, *bytes, &end), "safetensors",
                "{}: expected a shape whose bytes int64 can count; found {}; make it smaller.", entry.name,
                Json(entry.shape).dump());
    Json description = Json::object();
    description["dtype"] = type_row(entry.type).name;
    description["shape"] = entry.shape;
    description["data_offsets"] = {offset, end};
    members.emplace_back(entry.name, std::move(description));
    offset = end;
  }
  return header;
}

}  // namespace

std::optional<ElementType> find_element_type(std::string_view name) {
  for (const TypeRow& row : kTypes)
    if (row.name == name) return row.type;
  return std::nullopt;
}

std::vector<std::string> element_type_names() {
  std::vector<std::string> names;
  for (const TypeRow& row : kTypes) names.emplace_back(row.name);
  return names;
}

std::string_view element_type_name(ElementType type) {
  return type_row(type).name;
}

int64_t element_bytes(ElementType type) {
  return type_row(type).bytes;
}

int64_t TensorEntry::bytes() const {
  const auto bytes = tensor_bytes(shape, type);
  PRISM_CHECK(bytes, "safetensors", "{}: expected a shape whose bytes int64 can count; found {}; make it smaller.",
              name, Json(shape).dump());
  return *bytes;
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : path_(path), file_(path) {
  read(file_.bytes());
}

SafetensorsReader::SafetensorsReader(std::span<const std::byte> bytes, const std::string& name) : path_(name) {
  read(bytes);
}

void SafetensorsReader::read(std::span<const std::byte> bytes) {
  const std::string file = path_.string();
  PRISM_CHECK(
      bytes.size() >= kLengthBytes, "safetensors",
      "{}: expected a safetensors file; found only {} bytes; it is cut short or of another format; name another.", file,
      bytes.size());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  PRISM_CHECK(length <= kMaxHeaderBytes, "safetensors",
              "{}: expected a header of at most {} bytes; found {}; the file is damaged or of another format; copy it "
              "again, or name another.",
              file, kMaxHeaderBytes, length);
  PRISM_CHECK(length <= bytes.size() - kLengthBytes, "safetensors",
              "{}: expected a header of {} bytes; found {} bytes after its length; the file is cut short, restore it.",
              file, length, bytes.size() - kLengthBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  const auto buffer = bytes.subspan(kLengthBytes + length);
  SafetensorsHeader header = parse_safetensors_header(text, buffer, file);
  entries_ = std::move(header.entries);
  metadata_ = std::move(header.metadata);
  std::stable_sort(entries_.begin(), entries_.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  for (size_t i = 0; i < entries_.size(); ++i)
    PRISM_CHECK(index_.emplace(entries_[i].name, i).second, "safetensors",
                "{}: expected every name once in the header; found \"{}\" twice; the file is damaged, copy it again.",
                file, entries_[i].name);
  check_tiling(entries_, buffer, file);
}

bool SafetensorsReader::contains(const std::string& name) const {
  return index_.count(name) > 0;
}

const TensorEntry& SafetensorsReader::find(const std::string& name) const {
  if (auto row = index_.find(name); row != index_.end()) return entries_[row->second];
  std::vector<std::string> names;
  for (const TensorEntry& entry : entries_) names.push_back(entry.name);
  const std::string near = nearest_name(name, names);
  throw InputError(
      "safetensors",
      fmt::format("{}: expected a tensor {}; found {}; name another file, or restore this one.", path_.string(), name,
                  near.empty() ? fmt::format("{} others", names.size())
                               : fmt::format("{} others, among them {}", names.size(), near)));
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path, const std::vector<TensorEntry>& entries,
                                     std::map<std::string, std::string> metadata)
    : file_(path), entries_(entries) {
  for (TensorEntry& entry : entries_) entry.data = {};
  std::string header = header_json(entries_, std::move(metadata)).dump();
  header.append((kHeaderAlignment - header.size() % kHeaderAlignment) % kHeaderAlignment, ' ');
  PRISM_CHECK(header.size() <= kMaxHeaderBytes, "safetensors",
              "{}: expected a header of at most {} bytes; found {}; write fewer tensors to one file.", path.string(),
              kMaxHeaderBytes, header.size());
  const uint64_t length = header.size();
  file_.write(&length, kLengthBytes);
  file_.write(header);
}

void SafetensorsWriter::write(std::span<const std::byte> data) {
  PRISM_ASSERT(next_ < entries_.size(), "safetensors", "all {} tensors are written already", entries_.size());
  const TensorEntry& entry = entries_[next_];
  PRISM_ASSERT(static_cast<int64_t>(data.size()) == entry.bytes(), "safetensors", "{}: expected {} bytes; found {}",
               entry.name, entry.bytes(), data.size());
  file_.write(data.data(), data.size());
  ++next_;
}

void SafetensorsWriter::commit() {
  PRISM_ASSERT(next_ == entries_.size(), "safetensors", "expected {} tensors; found {} written", entries_.size(),
               next_);
  file_.commit();
}

}  // namespace prism
