// GGUF files as bytes, put together without any checks, for tests of damaged files.
//
//   GgufBytes file(/*tensors=*/1, /*keys=*/0);   file.tensor("w", {4}, 0, 0).pad(32).raw(std::string(16, 'x'));
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace prism {

class GgufBytes {
 public:
  GgufBytes(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    raw("GGUF").number(version).number(tensors).number(keys);
  }

  template <class Number>
  GgufBytes& number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufBytes& raw(const std::string& bytes) {
    bytes_ += bytes;
    return *this;
  }
  GgufBytes& text(const std::string& text) { return number(uint64_t{text.size()}).raw(text); }
  /// A key and the type of its value, which has to follow.
  GgufBytes& key(const std::string& name, uint32_t type) { return text(name).number(type); }
  /// @param sizes  fastest first, as in the file.
  GgufBytes& tensor(const std::string& name, const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset) {
    text(name).number(static_cast<uint32_t>(sizes.size()));
    for (const uint64_t size : sizes) number(size);
    return number(type).number(offset);
  }
  GgufBytes& pad(size_t alignment) {
    return raw(std::string((alignment - bytes_.size() % alignment) % alignment, '\0'));
  }

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

inline std::span<const std::byte> span_of(const std::string& bytes) {
  return std::as_bytes(std::span(bytes));
}

}  // namespace prism
