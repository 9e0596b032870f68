#include "prism/tokenizer/sources/llama2c_file.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "prism/core/error.h"
#include "prism/tokenizer/sources/scored_pieces.h"
#include "prism/tokenizer/space_marker.h"

namespace prism {
namespace {

constexpr size_t kFirstByteToken = 3, kFirstNormalToken = 259;
/// The names of the tokens before the bytes: unknown, opening, end.
constexpr const char* kFirstNames[kFirstByteToken] = {"<unk>", "<s>", "</s>"};
constexpr int32_t kOpeningId = 1, kEndId = 2;

std::string marked(std::string_view text) {
  std::string result;
  for (const char byte : text) {
    if (byte == ' ') {
      result += kSpaceMarker;
    } else {
      result += byte;
    }
  }
  return result;
}

/// U+0000 to U+00FF in UTF-8, by which older files spell the byte tokens.
std::string latin1_character(uint8_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
}

ScoredPiece piece_of_row(size_t id, float score, std::string_view text) {
  ScoredPiece piece{.text = marked(text), .score = score, .kind = ScoredPiece::Kind::normal};
  if (id < kFirstByteToken) {
    // The file puts line feeds around <s> and </s>, to show them as lines of their own.
    piece.text = kFirstNames[id];
    piece.kind = id == 0 ? ScoredPiece::Kind::unknown : ScoredPiece::Kind::control;
  } else if (id < kFirstNormalToken) {
    piece.kind = ScoredPiece::Kind::byte;
    const auto byte = static_cast<uint8_t>(id - kFirstByteToken);
    if (text == latin1_character(byte)) piece.text = fmt::format("<0x{:02X}>", byte);
  }
  return piece;
}

}  // namespace

TokenizerFile parse_llama2c_file(std::string_view bytes, const std::string& source) {
  std::vector<ScoredPiece> pieces;
  PRISM_CHECK(bytes.size() >= 4, "tokenizer",
              "{}: expected a table of tokens as llama2.c writes it; found {} bytes; name a tokenizer.bin.", source,
              bytes.size());
  uint32_t longest = 0;
  std::memcpy(&longest, bytes.data(), 4);
  for (size_t at = 4; at < bytes.size();) {
    float score = 0;
    int32_t length = 0;
    const size_t left = bytes.size() - at;
    if (left >= 8) {
      std::memcpy(&score, bytes.data() + at, 4);
      std::memcpy(&length, bytes.data() + at + 4, 4);
    }
    PRISM_CHECK(
        left >= 8 && length >= 0 && static_cast<size_t>(length) <= left - 8 && static_cast<uint32_t>(length) <= longest,
        "tokenizer",
        "{}: expected token {} of a table as llama2.c writes it; found a length of {} where {} bytes are left and "
        "the longest token has {}; name a whole tokenizer.bin.",
        source, pieces.size(), length, left, longest);
    pieces.push_back(piece_of_row(pieces.size(), score, bytes.substr(at + 8, static_cast<size_t>(length))));
    at += 8 + static_cast<size_t>(length);
  }
  PRISM_CHECK(pieces.size() >= kFirstNormalToken, "tokenizer",
              "{}: expected at least {} tokens; found {}; name a whole tokenizer.bin.", source, kFirstNormalToken,
              pieces.size());
  return file_of_pieces(pieces, {.add_prefix = true, .remove_extra_spaces = false}, source);
}

TextSettings llama2c_settings() {
  return {.special_ids = {.opening = kOpeningId, .ends = {kEndId, kOpeningId}, .opens_prompts = true},
          .special_tokens = {{"bos_token", kFirstNames[kOpeningId]}, {"eos_token", kFirstNames[kEndId]}}};
}

}  // namespace prism
