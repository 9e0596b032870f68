#include "prism/formats/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/names.h"

namespace prism {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr uint64_t kLengthBytes = 8, kMaxHeaderBytes = 100'000'000, kHeaderAlignment = 8;
constexpr const char* kMetadataKey = "__metadata__";

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

/// Product of the shape times the element's size; nothing when a dimension is negative or int64 does not hold it.
std::optional<int64_t> tensor_bytes(const std::vector<int64_t>& shape, ElementType type) {
  // An empty tensor may have other dimensions whose product alone would overflow.
  const bool valid = std::all_of(shape.begin(), shape.end(), [](int64_t size) { return size >= 0; });
  if (!valid) return std::nullopt;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t bytes = element_bytes(type);
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return std::nullopt;
  }
  return bytes;
}

/// The header's JSON, refused when it is nested deeper than a header is or holds a name twice.
class HeaderParser {
 public:
  explicit HeaderParser(std::string file) : file_(std::move(file)) {}

  nlohmann::json parse(std::string_view text) {
    const auto watch = [this](int depth, nlohmann::json::parse_event_t event, nlohmann::json& parsed) {
      return see(depth, event, parsed);
    };
    try {
      auto header = nlohmann::json::parse(text, watch);
      PRISM_CHECK(header.is_object(), "safetensors", "{}: expected a header that is a JSON object; found {}.", file_,
                  header.type_name());
      return header;
    } catch (const nlohmann::json::exception&) {
      throw InputError("safetensors", fmt::format("{}: expected a header in JSON; found something else in its first {} "
                                                  "bytes; the file is damaged or of another format.",
                                                  file_, text.size() + kLengthBytes));
    }
  }

 private:
  using Event = nlohmann::json::parse_event_t;

  bool see(int depth, Event event, const nlohmann::json& parsed) {
    // {"name": {"shape": [..]}}: an array inside an object inside an object.
    constexpr int kDeepest = 2;
    const bool opens = event == Event::object_start || event == Event::array_start;
    PRISM_CHECK(!opens || depth <= kDeepest, "safetensors",
                "{}: expected a header of objects of names, types, shapes; found deeper nesting; the file is damaged.",
                file_);
    if (event == Event::object_start) seen_.emplace_back();
    if (event == Event::object_end) seen_.pop_back();
    if (event == Event::key) {
      const auto name = parsed.get<std::string>();
      PRISM_CHECK(seen_.back().insert(name).second, "safetensors",
                  "{}: expected every name once in the header; found \"{}\" twice; the file is damaged.", file_, name);
    }
    return true;
  }

  std::string file_;
  std::vector<std::set<std::string>> seen_;
};

std::map<std::string, std::string> parse_metadata(const nlohmann::json& json, const std::string& file) {
  PRISM_CHECK(json.is_object(), "safetensors", "{}: expected {} to be an object of texts; found {}.", file,
              kMetadataKey, json.type_name());
  std::map<std::string, std::string> metadata;
  for (const auto& [name, value] : json.items()) {
    PRISM_CHECK(value.is_string(), "safetensors", "{}: expected {}.{} to be text; found {}.", file, kMetadataKey, name,
                value.type_name());
    metadata[name] = value.get<std::string>();
  }
  return metadata;
}

ElementType parse_type(const nlohmann::json& json, const std::string& where) {
  PRISM_CHECK(json.is_string(), "safetensors", "{}: expected dtype to be text; found {}.", where, json.type_name());
  const auto name = json.get<std::string>();
  const auto* row =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& known) { return known.name == name; });
  if (row == kTypes.end()) {
    std::vector<std::string> known;
    for (const TypeRow& each : kTypes) known.emplace_back(each.name);
    throw InputError("safetensors", fmt::format("{}: expected a dtype out of {}; found \"{}\"; convert the file first.",
                                                where, join_names(known), name));
  }
  return row->type;
}

std::vector<int64_t> parse_sizes(const nlohmann::json& json, const std::string& where, const char* what) {
  PRISM_CHECK(json.is_array(), "safetensors", "{}: expected {} to be a list; found {}.", where, what, json.type_name());
  std::vector<int64_t> sizes;
  for (const auto& element : json) {
    PRISM_CHECK(element.is_number_unsigned() && element.get<uint64_t>() <= INT64_MAX, "safetensors",
                "{}: expected {} to hold whole numbers from 0 to {}; found {}.", where, what, INT64_MAX,
                element.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    sizes.push_back(element.get<int64_t>());
  }
  return sizes;
}

/// One tensor of the header, its data placed in `buffer` after every check that one tensor allows.
TensorEntry parse_entry(const std::string& name, const nlohmann::json& json, std::span<const std::byte> buffer,
                        const std::string& file) {
  const std::string where = fmt::format("{}: {}", file, name);
  PRISM_CHECK(json.is_object() && json.size() == 3 && json.contains("dtype") && json.contains("shape") &&
                  json.contains("data_offsets"),
              "safetensors", "{}: expected exactly dtype, shape and data_offsets; found something else.", where);
  TensorEntry entry;
  entry.name = name;
  entry.type = parse_type(json["dtype"], where);
  entry.shape = parse_sizes(json["shape"], where, "shape");
  const auto offsets = parse_sizes(json["data_offsets"], where, "data_offsets");
  PRISM_CHECK(offsets.size() == 2 && offsets[0] <= offsets[1], "safetensors",
              "{}: expected data_offsets [begin, end]; found {}.", where, json["data_offsets"].dump());
  const auto end = static_cast<uint64_t>(offsets[1]);
  PRISM_CHECK(end <= buffer.size(), "safetensors",
              "{}: expected its data to end by byte {} of the data; found {}; the file is cut short or damaged.", where,
              buffer.size(), end);
  const auto bytes = tensor_bytes(entry.shape, entry.type);
  PRISM_CHECK(bytes == offsets[1] - offsets[0], "safetensors",
              "{}: expected the bytes of {} {}; found {} bytes of data; the file is damaged.", where,
              json["dtype"].get<std::string>(), json["shape"].dump(), offsets[1] - offsets[0]);
  entry.data = buffer.subspan(static_cast<size_t>(offsets[0]), static_cast<size_t>(*bytes));
  return entry;
}

/// The entries lie one behind the other and cover the buffer.
void check_tiling(const std::vector<TensorEntry>& entries, std::span<const std::byte> buffer, const std::string& file) {
  const std::byte* next = buffer.data();
  for (const TensorEntry& entry : entries) {
    PRISM_CHECK(entry.data.data() == next, "safetensors",
                "{}: expected {} to begin at byte {} of the data, behind the tensor before it; found byte {}: {}; the "
                "file is damaged.",
                file, entry.name, next - buffer.data(), entry.data.data() - buffer.data(),
                entry.data.data() < next ? "they overlap" : "there is a hole");
    next += entry.data.size();
  }
  const auto left = buffer.data() + buffer.size() - next;
  PRISM_CHECK(left == 0, "safetensors",
              "{}: expected the file to end behind its last tensor; found {} more bytes; copy it again.", file, left);
}

Json header_json(const std::vector<TensorEntry>& entries, std::map<std::string, std::string> metadata) {
  metadata.emplace("format", "pt");
  Json header = Json::object();
  header[kMetadataKey] = Json(metadata);
  // Through the object's own list: operator[] of an ordered object searches it from the front each time.
  auto& members = header.get_ref<Json::object_t&>();
  std::set<std::string> names = {kMetadataKey};
  int64_t offset = 0;
  for (const TensorEntry& entry : entries) {
    PRISM_CHECK(names.insert(entry.name).second, "safetensors", "expected every tensor name once; found {} twice.",
                entry.name);
    const auto bytes = tensor_bytes(entry.shape, entry.type);
    int64_t end = 0;
    PRISM_CHECK(bytes && !__builtin_add_overflow(offset, *bytes, &end), "safetensors",
                "{}: expected a shape whose bytes int64 can count; found {}.", entry.name, Json(entry.shape).dump());
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

std::string_view element_type_name(ElementType type) {
  return type_row(type).name;
}

int64_t element_bytes(ElementType type) {
  return type_row(type).bytes;
}

int64_t TensorEntry::bytes() const {
  const auto bytes = tensor_bytes(shape, type);
  PRISM_CHECK(bytes, "safetensors", "{}: expected a shape whose bytes int64 can count; found {}.", name,
              Json(shape).dump());
  return *bytes;
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) : path_(path), file_(path) {
  const auto bytes = file_.bytes();
  const std::string file = path.string();
  PRISM_CHECK(bytes.size() >= kLengthBytes, "safetensors",
              "{}: expected a safetensors file; found only {} bytes; it is cut short or of another format.", file,
              bytes.size());
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  PRISM_CHECK(length <= kMaxHeaderBytes, "safetensors",
              "{}: expected a header of at most {} bytes; found {}; the file is damaged or of another format.", file,
              kMaxHeaderBytes, length);
  PRISM_CHECK(length <= bytes.size() - kLengthBytes, "safetensors",
              "{}: expected a header of {} bytes; found {} bytes behind its length; the file is cut short.", file,
              length, bytes.size() - kLengthBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  const nlohmann::json header = HeaderParser(file).parse(text);
  const auto buffer = bytes.subspan(kLengthBytes + length);
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadataKey) {
      metadata_ = parse_metadata(json, file);
    } else {
      entries_.push_back(parse_entry(name, json, buffer, file));
    }
  }
  std::stable_sort(entries_.begin(), entries_.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  check_tiling(entries_, buffer, file);
  for (size_t i = 0; i < entries_.size(); ++i) index_[entries_[i].name] = i;
}

bool SafetensorsReader::contains(const std::string& name) const {
  return index_.count(name) > 0;
}

const TensorEntry& SafetensorsReader::find(const std::string& name) const {
  if (auto row = index_.find(name); row != index_.end()) return entries_[row->second];
  std::vector<std::string> names;
  for (const TensorEntry& entry : entries_) names.push_back(entry.name);
  const std::string near = nearest_name(name, names);
  throw InputError("safetensors", fmt::format("{}: expected a tensor {}; found {} others{}.", path_.string(), name,
                                              names.size(), near.empty() ? "" : ", the nearest is " + near));
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
