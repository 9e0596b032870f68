// Hand-written scanners for the well-known pre-tokenizer patterns, based on Unicode tables. They are several times
// faster than a compiled regular expression and are fuzzed against it in tests/tokenizer/split/pretokenizer_test.cpp.
//
//   for (size_t at = 0, end; at < text.size(); at = end) { end = gpt2_piece_end(text, at); ... }
#pragma once

#include <cstddef>
#include <string_view>

namespace prism {

inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

/// End of the piece that kGpt2Pattern matches at `start`.
/// @param text   well-formed UTF-8.
/// @param start  start of a character, below text.size().
size_t gpt2_piece_end(std::string_view text, size_t start);

/// The same for kLlama3Pattern (max_digits 3) and kQwen2Pattern (1).
size_t llama3_piece_end(std::string_view text, size_t start, size_t max_digits);

/// End of the run of numbers, or of other characters, that starts at `start`. If `individual`, a single number.
size_t digits_piece_end(std::string_view text, size_t start, bool individual);

}  // namespace prism
