#include "prism/formats/gguf_cursor.h"

#include "prism/core/error.h"
#include "prism/core/text/printable.h"

namespace prism {

std::string GgufCursor::where() const {
  return place_.empty() ? file_ : fmt::format("{}: {}", file_, short_line(place_, 80));
}

std::span<const std::byte> GgufCursor::take(uint64_t size) {
  PRISM_CHECK(size <= left(), "gguf",
              "{}: expected {} bytes at byte {}; found {} to the end of the file; it is cut short or damaged, restore "
              "it.",
              where(), size, position_, left());
  const auto taken = bytes_.subspan(position_, size);
  position_ += size;
  return taken;
}

std::string_view GgufCursor::text() {
  const auto size = number<uint64_t>();
  return {reinterpret_cast<const char*>(take(size).data()), size};
}

uint64_t GgufCursor::count(uint64_t least_bytes, std::string_view items) {
  const auto count = number<uint64_t>();
  check_count(count, least_bytes, items);
  return count;
}

void GgufCursor::check_count(uint64_t count, uint64_t least_bytes, std::string_view items) const {
  PRISM_CHECK(count <= left() / least_bytes, "gguf",
              "{}: expected {} {}; found only {} bytes to the end of the file; it is cut short or damaged, restore it.",
              where(), count, items, left());
}

}  // namespace prism
