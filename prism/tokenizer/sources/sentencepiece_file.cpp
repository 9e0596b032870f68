#include "prism/tokenizer/sources/sentencepiece_file.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/tokenizer/sources/protobuf.h"
#include "prism/tokenizer/sources/scored_pieces.h"
#include "prism/tokenizer/space_marker.h"

namespace prism {
namespace {

using PieceKind = ScoredPiece::Kind;

constexpr size_t kShownName = 60;
// Numbers of the types and models in the format.
enum PieceType : uint64_t {
  kNormalPiece = 1,
  kUnknownPiece,
  kControlPiece,
  kUserDefinedPiece,
  kUnusedPiece,
  kBytePiece
};
constexpr uint64_t kBpeModel = 2;

/// What the format says beside the pieces, with its defaults.
struct SentencePieceSpec {
  uint64_t model_type = 1;
  bool byte_fallback = false, spaces_are_suffixes = false;
  std::string normalizer;
  bool has_map = false, add_dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true;
};

PieceKind kind_of_type(uint64_t type, const std::string& source) {
  PRISM_CHECK(
      type != kUnusedPiece, "tokenizer",
      "{}: expected a model without unused pieces; found one; they are not supported, choose another tokenizer.",
      source);
  switch (type) {
    case kNormalPiece:
      return PieceKind::normal;
    case kUnknownPiece:
      return PieceKind::unknown;
    case kControlPiece:
      return PieceKind::control;
    case kUserDefinedPiece:
      return PieceKind::user_defined;
    case kBytePiece:
      return PieceKind::byte;
    default:
      throw InputError("tokenizer", fmt::format("{}: expected pieces of the types 1 to 6; found {}; this is no "
                                                "SentencePiece model, name one.",
                                                source, type));
  }
}

ScoredPiece read_piece(std::string_view message, const std::string& source) {
  ScoredPiece piece;
  uint64_t type = kNormalPiece;
  ProtobufReader reader(message, source);
  while (const auto field = reader.next()) {
    if (field->number == 1) piece.text = reader.text(*field);
    if (field->number == 2) piece.score = reader.real(*field);
    if (field->number == 3) type = reader.number(*field);
  }
  piece.kind = kind_of_type(type, source);
  return piece;
}

void read_trainer(std::string_view message, const std::string& source, SentencePieceSpec& spec) {
  ProtobufReader reader(message, source);
  while (const auto field = reader.next()) {
    if (field->number == 3) spec.model_type = reader.number(*field);
    if (field->number == 24) spec.spaces_are_suffixes = reader.flag(*field);
    if (field->number == 35) spec.byte_fallback = reader.flag(*field);
  }
}

void read_normalizer(std::string_view message, const std::string& source, SentencePieceSpec& spec) {
  ProtobufReader reader(message, source);
  while (const auto field = reader.next()) {
    if (field->number == 1) spec.normalizer = reader.text(*field);
    if (field->number == 2) spec.has_map = !reader.text(*field).empty();
    if (field->number == 3) spec.add_dummy_prefix = reader.flag(*field);
    if (field->number == 4) spec.remove_extra_spaces = reader.flag(*field);
    if (field->number == 5) spec.escape_spaces = reader.flag(*field);
  }
}

/// Whether a denormalizer changes decoded text.
bool has_map(std::string_view message, const std::string& source) {
  SentencePieceSpec spec;
  read_normalizer(message, source, spec);
  return spec.has_map;
}

void check_supported(const SentencePieceSpec& spec, const std::string& source) {
  constexpr std::array<const char*, 5> kModels = {"", "unigram", "bpe", "word", "char"};
  PRISM_CHECK(
      spec.model_type == kBpeModel, "tokenizer",
      "{}: expected a SentencePiece model of the type bpe; found {}; other types are not supported, choose another "
      "tokenizer.",
      source,
      spec.model_type >= 1 && spec.model_type < kModels.size() ? kModels[static_cast<size_t>(spec.model_type)]
                                                               : std::to_string(spec.model_type));
  PRISM_CHECK(spec.byte_fallback, "tokenizer",
              "{}: expected a SentencePiece model with byte_fallback, so that every text can be encoded; found none; "
              "choose another tokenizer.",
              source);
  PRISM_CHECK(
      !spec.has_map, "tokenizer",
      "{}: expected the normalizer identity; found \"{}\", which rewrites characters; it is not supported, choose "
      "another tokenizer.",
      source, short_line(spec.normalizer, kShownName));
  PRISM_CHECK(
      spec.escape_spaces && !spec.spaces_are_suffixes, "tokenizer",
      "{}: expected a SentencePiece model that marks spaces before words; found {}; it is not supported, choose "
      "another tokenizer.",
      source, spec.escape_spaces ? "treat_whitespace_as_suffix" : "escape_whitespaces off");
}

}  // namespace

TokenizerFile parse_sentencepiece_file(std::string_view bytes, const std::string& source) {
  std::vector<ScoredPiece> pieces;
  SentencePieceSpec spec;
  bool denormalizes = false;
  ProtobufReader reader(bytes, source);
  while (const auto field = reader.next()) {
    if (field->number == 1) pieces.push_back(read_piece(reader.text(*field), source));
    if (field->number == 2) read_trainer(reader.text(*field), source, spec);
    if (field->number == 3) read_normalizer(reader.text(*field), source, spec);
    if (field->number == 5) denormalizes = has_map(reader.text(*field), source);
  }
  PRISM_CHECK(!pieces.empty(), "tokenizer",
              "{}: expected a SentencePiece model; found no pieces; name a tokenizer.model.", source);
  check_supported(spec, source);
  PRISM_CHECK(
      !denormalizes, "tokenizer",
      "{}: expected a SentencePiece model without a denormalizer; found one; it is not supported, choose another "
      "tokenizer.",
      source);
  const bool user_defined = std::any_of(pieces.begin(), pieces.end(),
                                        [](const ScoredPiece& piece) { return piece.kind == PieceKind::user_defined; });
  PRISM_CHECK(!user_defined || !spec.add_dummy_prefix, "tokenizer",
              "{}: expected user-defined pieces only without add_dummy_prefix; found both; no tokenizer.json can say "
              "this, use the one that comes with the model.",
              source);
  return file_of_pieces(pieces, {.add_prefix = spec.add_dummy_prefix, .remove_extra_spaces = spec.remove_extra_spaces},
                        source);
}

}  // namespace prism
