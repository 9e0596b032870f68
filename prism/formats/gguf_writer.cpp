#include "prism/formats/gguf_writer.h"

#include <fmt/ranges.h>

#include <bit>
#include <set>
#include <string_view>
#include <type_traits>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

constexpr uint32_t kWrittenVersion = 3;

/// The header of a file, which grows as values are put into it.
class GgufHeader {
 public:
  const std::string& bytes() const { return bytes_; }

  template <class Number>
  void put(Number number) {
    static_assert(std::is_arithmetic_v<Number>);
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void put(bool flag) { bytes_.push_back(flag ? '\1' : '\0'); }
  void put(const std::string& text) {
    put(static_cast<uint64_t>(text.size()));
    bytes_ += text;
  }
  void put(const GgufArray& array) {
    put(gguf_element_type(array));
    std::visit(
        [&](const auto& elements) {
          using Element = typename std::decay_t<decltype(elements)>::value_type;
          put(static_cast<uint64_t>(elements.size()));
          for (const Element& element : elements) put(element);
        },
        array);
  }
  void put_value(const GgufValue& value) {
    put(static_cast<uint32_t>(value.index()));
    std::visit([&](const auto& exact) { put(exact); }, value);
  }
  void pad(int64_t alignment) { bytes_.append(padding(bytes_.size(), alignment), '\0'); }

  /// Number of bytes from `size` to the next multiple of `alignment`.
  static size_t padding(size_t size, int64_t alignment) {
    const auto unit = static_cast<size_t>(alignment);
    return (unit - size % unit) % unit;
  }

 private:
  std::string bytes_;
};

int64_t written_alignment(const GgufPairs& pairs) {
  for (const auto& [key, value] : pairs) {
    if (key != kGgufAlignmentKey) continue;
    const auto* alignment = std::get_if<uint32_t>(&value);
    PRISM_CHECK(alignment != nullptr && std::has_single_bit(*alignment), "gguf",
                "expected {} to be a uint32 and a power of two; found {}; leave it out to get {}.", kGgufAlignmentKey,
                alignment != nullptr ? fmt::to_string(*alignment) : gguf_type_name(value), kGgufDefaultAlignment);
    return *alignment;
  }
  return kGgufDefaultAlignment;
}

void put_pairs(GgufHeader& header, const GgufPairs& pairs) {
  std::set<std::string_view> keys;
  for (const auto& [key, value] : pairs) {
    PRISM_CHECK(keys.insert(key).second, "gguf", "expected every key once; found {} twice; remove one.",
                short_line(key, 80));
    PRISM_CHECK(key.size() <= kMaxGgufKeyBytes, "gguf",
                "expected keys of at most {} bytes; found one of {}; shorten it.", kMaxGgufKeyBytes, key.size());
    header.put(key);
    header.put_value(value);
  }
}

/// Describes one tensor in the header. @return its bytes.
int64_t put_tensor(GgufHeader& header, const GgufTensor& tensor, uint64_t offset) {
  const std::string name = short_line(tensor.name, 80);
  PRISM_CHECK(tensor.name.size() <= kMaxGgufNameBytes, "gguf",
              "{}: expected names of tensors of at most {} bytes; found {}; shorten it.", name, kMaxGgufNameBytes,
              tensor.name.size());
  PRISM_CHECK(tensor.shape.size() <= kMaxGgufDimensions, "gguf",
              "{}: expected at most {} dimensions; found {}; reshape it.", name, kMaxGgufDimensions,
              tensor.shape.size());
  const auto bytes = block_tensor_bytes(tensor.type, tensor.shape);
  const BlockLayout& layout = block_layout(tensor.type);
  PRISM_CHECK(bytes, "gguf",
              "{}: expected rows of whole {} blocks ({} values each) and a size that int64 can count; found the shape "
              "[{}]; choose another type for it.",
              name, layout.name, layout.elements, fmt::join(tensor.shape, ","));
  header.put(tensor.name);
  header.put(static_cast<uint32_t>(tensor.shape.size()));
  for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) header.put(static_cast<uint64_t>(*size));
  header.put(static_cast<uint32_t>(tensor.type));
  header.put(offset);
  return *bytes;
}

}  // namespace

GgufWriter::GgufWriter(const std::filesystem::path& path, const GgufPairs& pairs,
                       const std::vector<GgufTensor>& tensors)
    : file_(path), alignment_(written_alignment(pairs)) {
  GgufHeader header;
  for (const char letter : {'G', 'G', 'U', 'F'}) header.put(letter);
  header.put(kWrittenVersion);
  header.put(static_cast<uint64_t>(tensors.size()));
  header.put(static_cast<uint64_t>(pairs.size()));
  put_pairs(header, pairs);
  std::set<std::string_view> names;
  int64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    PRISM_CHECK(names.insert(tensor.name).second, "gguf", "expected every tensor once; found {} twice; rename one.",
                short_line(tensor.name, 80));
    const int64_t bytes = put_tensor(header, tensor, static_cast<uint64_t>(offset));
    parts_.push_back({tensor.name, bytes});
    const auto padding = static_cast<int64_t>(GgufHeader::padding(static_cast<size_t>(bytes), alignment_));
    const bool overflows =
        __builtin_add_overflow(offset, bytes, &offset) || __builtin_add_overflow(offset, padding, &offset);
    PRISM_CHECK(!overflows, "gguf",
                "{}: expected a file whose bytes int64 can count; found more; write fewer tensors to one file.",
                short_line(tensor.name, 80));
  }
  header.pad(alignment_);
  file_.write(header.bytes());
}

void GgufWriter::write(std::span<const std::byte> data) {
  PRISM_ASSERT(next_ < parts_.size(), "gguf", "all {} tensors are written already", parts_.size());
  const Part& part = parts_[next_];
  PRISM_ASSERT(static_cast<int64_t>(data.size()) == part.bytes, "gguf", "{}: expected {} bytes; found {}", part.name,
               part.bytes, data.size());
  file_.write(data.data(), data.size());
  file_.write(std::string(GgufHeader::padding(data.size(), alignment_), '\0'));
  ++next_;
}

void GgufWriter::commit() {
  PRISM_ASSERT(next_ == parts_.size(), "gguf", "expected {} tensors; found {} written", parts_.size(), next_);
  file_.commit();
}

}  // namespace prism
