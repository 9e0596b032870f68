// Reads the numbers and strings of a GGUF file one after the other, and never beyond its end.
//
//   GgufCursor cursor(bytes, "model.gguf");   const auto count = cursor.number<uint64_t>();
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace prism {

class GgufCursor {
 public:
  /// @param file  the file's name in messages.
  GgufCursor(std::span<const std::byte> bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  /// Names what is being read, for messages. The text must stay valid.
  void enter(std::string_view place) { place_ = place; }
  /// "model.gguf" or "model.gguf: general.name".
  std::string where() const;

  size_t position() const { return position_; }
  uint64_t left() const { return bytes_.size() - position_; }

  /// The next bytes. @throws InputError, naming file and place, if the file ends before.
  std::span<const std::byte> take(uint64_t size);
  template <class Number>
  Number number() {
    Number value = {};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view text();
  /// Reads a uint64 that counts items of at least `least_bytes` each, so that memory may be allocated for them.
  /// @throws InputError if the rest of the file cannot hold them. @param items  e.g. "tensors".
  uint64_t count(uint64_t least_bytes, std::string_view items);
  /// The same for a count that was read before.
  void check_count(uint64_t count, uint64_t least_bytes, std::string_view items) const;

 private:
  std::span<const std::byte> bytes_;
  const std::string& file_;
  std::string_view place_;
  size_t position_ = 0;
};

}  // namespace prism
