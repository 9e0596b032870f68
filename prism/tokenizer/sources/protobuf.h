// Reads the fields of a protobuf message one by one, as far as SentencePiece's models need it.
//
//   ProtobufReader reader(bytes, "tokenizer.model");
//   while (const auto field = reader.next()) if (field->number == 1) use(field->bytes);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace prism {

/// Never reads beyond the message. A message inside it is read by a reader of its own.
class ProtobufReader {
 public:
  enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
  struct Field {
    uint32_t number = 0;
    Wire wire = Wire::varint;
    uint64_t value = 0;           ///< of a number
    std::string_view bytes = {};  ///< of a text or message; points into the message
  };

  /// @param message  not copied. @param source  name of the file in messages.
  ProtobufReader(std::string_view message, const std::string& source) : rest_(message), source_(source) {}

  /// The next field; std::nullopt at the end.
  /// @throws InputError for a message that ends too early, or whose lengths or types are impossible.
  std::optional<Field> next();

  /// The value of a field as its type. @throws InputError if the field has another wire type.
  std::string_view text(const Field& field) const;
  bool flag(const Field& field) const;
  uint64_t number(const Field& field) const;
  float real(const Field& field) const;

 private:
  uint64_t varint();
  uint64_t fixed(size_t bytes);
  void check_wire(const Field& field, Wire expected) const;

  std::string_view rest_;
  const std::string& source_;
};

}  // namespace prism
