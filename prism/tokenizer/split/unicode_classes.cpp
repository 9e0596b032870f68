#include "prism/tokenizer/split/unicode_classes.h"

#include <memory>
#include <span>

namespace prism {
namespace {

struct CodePointRange {
  uint32_t first, last;
};

#include "prism/tokenizer/split/unicode_classes.inc"

std::unique_ptr<uint8_t[]> make_classes() {
  auto classes = std::make_unique<uint8_t[]>(0x110000);
  const auto mark = [&](std::span<const CodePointRange> ranges, uint8_t bit) {
    for (const auto& range : ranges) {
      for (uint32_t code = range.first; code <= range.last; ++code) classes[code] |= bit;
    }
  };
  mark(kLetters, kLetter);
  mark(kNumbers, kNumber);
  mark(kSpaces, kSpace);
  mark(kWordCharacters, kWordCharacter);
  return classes;
}

}  // namespace

const uint8_t* character_classes() {
  static const std::unique_ptr<uint8_t[]> classes = make_classes();
  return classes.get();
}

}  // namespace prism
