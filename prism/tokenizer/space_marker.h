// The character that vocabularies in SentencePiece's manner have in place of a space.
#pragma once

#include <cstdint>
#include <string_view>

namespace prism {

inline constexpr std::string_view kSpaceMarker = "\u2581";
inline constexpr uint32_t kSpaceMarkerCode = 0x2581;

}  // namespace prism
