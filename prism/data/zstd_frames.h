// Follows the frames of a zstd stream (RFC 8878, section 3.1) without unpacking them, to check that it ends at a frame
// boundary. The decompressor does not report a stream that is cut short.
//
//   ZstdFrames frames;  while (...) frames.pass(bytes);  if (!frames.between_frames()) ...   // cut short
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace prism {

class ZstdFrames {
 public:
  /// Passes the next bytes of the stream, in portions of any size.
  void pass(std::string_view bytes);
  /// Returns true if the bytes so far are complete frames.
  bool between_frames() const { return part_ == Part::magic && have_ == 0; }

 private:
  enum class Part { magic, skippable_size, descriptor, header_rest, block_header, block, checksum, foreign };

  void expect(Part part, uint64_t bytes);
  void finish_part();
  void after_block();

  Part part_ = Part::magic;
  uint64_t want_ = 4;   ///< size of the current part in bytes
  uint64_t have_ = 0;   ///< bytes of it seen so far
  uint64_t value_ = 0;  ///< the part's first 8 bytes as a little-endian number
  bool checksum_ = false, last_block_ = false;
};

}  // namespace prism
