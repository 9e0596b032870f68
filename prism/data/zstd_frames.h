// Follows the frames of a zstd stream (RFC 8878, section 3.1) without unpacking them, to tell whether it ended where a
// frame does: the decompressor takes a stream that is cut short for a whole one.
//
//   ZstdFrames frames;  while (...) frames.pass(bytes);  if (!frames.between_frames()) ...   // cut short
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace prism {

class ZstdFrames {
 public:
  /// The next bytes of the stream, in portions of any size.
  void pass(std::string_view bytes);
  /// Whether the bytes so far are whole frames.
  bool between_frames() const { return part_ == Part::magic && have_ == 0; }

 private:
  enum class Part { magic, skippable_size, descriptor, header_rest, block_header, block, checksum, foreign };

  void expect(Part part, uint64_t bytes);
  void finish_part();
  void after_block();

  Part part_ = Part::magic;
  uint64_t want_ = 4;   ///< bytes of this part
  uint64_t have_ = 0;   ///< of them seen
  uint64_t value_ = 0;  ///< the part's first 8 bytes as a little-endian number
  bool checksum_ = false, last_block_ = false;
};

}  // namespace prism
