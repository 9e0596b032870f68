// Source of the wire format: protobuf.dev/programming-guides/encoding.
#include "prism/tokenizer/sources/protobuf.h"

#include <bit>

#include "prism/core/error.h"

namespace prism {

uint64_t ProtobufReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    PRISM_CHECK(!rest_.empty(), "tokenizer",
                "{}: expected a whole SentencePiece model; found that it ends inside a number; restore the file.",
                source_);
    const auto byte = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  throw InputError("tokenizer", fmt::format("{}: expected numbers of at most 10 bytes; found a longer one; this is no "
                                            "SentencePiece model, name one.",
                                            source_));
}

uint64_t ProtobufReader::fixed(size_t bytes) {
  PRISM_CHECK(rest_.size() >= bytes, "tokenizer",
              "{}: expected a whole SentencePiece model; found that it ends inside a number; restore the file.",
              source_);
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= uint64_t{static_cast<uint8_t>(rest_[i])} << (8 * i);
  rest_.remove_prefix(bytes);
  return value;
}

std::optional<ProtobufReader::Field> ProtobufReader::next() {
  if (rest_.empty()) return std::nullopt;
  const uint64_t key = varint();
  const uint64_t number = key >> 3;
  Field field;
  PRISM_CHECK(
      number >= 1 && number < (uint64_t{1} << 29), "tokenizer",
      "{}: expected fields with numbers from 1 to 2^29 - 1; found {}; this is no SentencePiece model, name one.",
      source_, number);
  field.number = static_cast<uint32_t>(number);
  field.wire = static_cast<Wire>(key & 7);
  switch (field.wire) {
    case Wire::varint:
      field.value = varint();
      return field;
    case Wire::fixed64:
      field.value = fixed(8);
      return field;
    case Wire::fixed32:
      field.value = fixed(4);
      return field;
    case Wire::bytes: {
      const uint64_t length = varint();
      PRISM_CHECK(length <= rest_.size(), "tokenizer",
                  "{}: expected a whole SentencePiece model; found a field of {} bytes where {} are left; "
                  "restore the file.",
                  source_, length, rest_.size());
      field.bytes = rest_.substr(0, length);
      rest_.remove_prefix(length);
      return field;
    }
  }
  throw InputError("tokenizer", fmt::format("{}: expected fields of the wire types 0, 1, 2 and 5; found {}; this is no "
                                            "SentencePiece model, name one.",
                                            source_, key & 7));
}

void ProtobufReader::check_wire(const Field& field, Wire expected) const {
  PRISM_CHECK(field.wire == expected, "tokenizer",
              "{}: expected field {} to have the wire type {}; found {}; this is no SentencePiece model, name one.",
              source_, field.number, static_cast<int>(expected), static_cast<int>(field.wire));
}

std::string_view ProtobufReader::text(const Field& field) const {
  check_wire(field, Wire::bytes);
  return field.bytes;
}

bool ProtobufReader::flag(const Field& field) const {
  check_wire(field, Wire::varint);
  return field.value != 0;
}

uint64_t ProtobufReader::number(const Field& field) const {
  check_wire(field, Wire::varint);
  return field.value;
}

float ProtobufReader::real(const Field& field) const {
  check_wire(field, Wire::fixed32);
  return std::bit_cast<float>(static_cast<uint32_t>(field.value));
}

}  // namespace prism
