#include "prism/data/zstd_frames.h"

#include <algorithm>

namespace prism {
namespace {

constexpr uint64_t kFrameMagic = 0xFD2FB528, kSkippableMagic = 0x184D2A50, kSkippableMask = 0xFFFFFFF0;

/// Number of bytes of the frame header after its descriptor: window, dictionary id, content size.
uint64_t header_rest_bytes(uint64_t descriptor) {
  constexpr uint64_t kDictionaryBytes[] = {0, 1, 2, 4}, kContentBytes[] = {0, 2, 4, 8};
  const bool single_segment = (descriptor >> 5 & 1) != 0;
  const uint64_t content = descriptor >> 6;
  return (single_segment ? 0 : 1) + kDictionaryBytes[descriptor & 3] +
         (single_segment && content == 0 ? 1 : kContentBytes[content]);
}

}  // namespace

void ZstdFrames::pass(std::string_view bytes) {
  while (!bytes.empty() && part_ != Part::foreign) {
    const auto count = static_cast<size_t>(std::min<uint64_t>(want_ - have_, bytes.size()));
    for (size_t i = 0; i < count && have_ + i < 8; ++i)
      value_ |= uint64_t{static_cast<uint8_t>(bytes[i])} << 8 * (have_ + i);
    have_ += count;
    bytes.remove_prefix(count);
    if (have_ == want_) finish_part();
  }
}

void ZstdFrames::expect(Part part, uint64_t bytes) {
  part_ = part;
  want_ = bytes;
  have_ = 0;
  value_ = 0;
  if (bytes == 0) finish_part();
}

void ZstdFrames::finish_part() {
  const uint64_t value = value_;
  switch (part_) {
    case Part::magic:
      if (value == kFrameMagic) return expect(Part::descriptor, 1);
      if ((value & kSkippableMask) == kSkippableMagic) return expect(Part::skippable_size, 4);
      return expect(Part::foreign, 1);  // the decompressor reports the error
    case Part::skippable_size:
      checksum_ = false;
      last_block_ = true;
      return expect(Part::block, value);
    case Part::descriptor:
      checksum_ = (value >> 2 & 1) != 0;
      return expect(Part::header_rest, header_rest_bytes(value));
    case Part::header_rest:
      return expect(Part::block_header, 3);
    case Part::block_header: {
      constexpr uint64_t kRepeatedByte = 1;
      last_block_ = (value & 1) != 0;
      return expect(Part::block, (value >> 1 & 3) == kRepeatedByte ? 1 : value >> 3);
    }
    case Part::block:
      return after_block();
    case Part::checksum:
    case Part::foreign:
      return expect(Part::magic, 4);
  }
}

void ZstdFrames::after_block() {
  if (!last_block_) return expect(Part::block_header, 3);
  if (checksum_) return expect(Part::checksum, 4);
  expect(Part::magic, 4);
}

}  // namespace prism
