#include "prism/data/chat/encode_chat.h"

#include <algorithm>

#include "prism/core/error.h"
#include "prism/formats/token_marks.h"
#include "prism/tokenizer/normalize/nfc.h"

namespace prism {
namespace {

/// The number of bytes of `rest` that a token takes. @param token  its bytes. @return  std::nullopt: it is not next.
std::optional<size_t> bytes_taken(std::string_view rest, std::string_view token) {
  if (rest.starts_with(token)) return token.size();
  // A space that the tokenizer put before the text, or before the part after a special token.
  if (token.starts_with(' ') && rest.starts_with(token.substr(1))) return token.size() - 1;
  return std::nullopt;
}

size_t white_space(std::string_view text) {
  return std::min(text.find_first_not_of(" \t\r\n\f\v"), text.size());
}

/// The same conversation in NFC. The parts are normalized one by one, so that their bounds are known.
RenderedChat normalized(const RenderedChat& chat) {
  RenderedChat result;
  const std::string_view text = chat.text;
  size_t place = 0;
  const auto add_to = [&](size_t end) {
    result.text += to_nfc(text.substr(place, end - place));
    place = end;
    return result.text.size();
  };
  for (const ByteRange& range : chat.assistant) {
    const size_t begin = add_to(range.begin);
    result.assistant.push_back({begin, add_to(range.end)});
  }
  add_to(text.size());
  return result;
}

std::vector<uint8_t> marks_of(const std::vector<ByteRange>& tokens, const std::vector<ByteRange>& assistant) {
  std::vector<uint8_t> marks(tokens.size());
  auto part = assistant.begin();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto& [begin, end] = tokens[i];
    while (part != assistant.end() && part->end <= begin) ++part;
    if (part == assistant.end()) break;
    // A token without bytes of its own, such as a space put before the text, counts where it stands.
    if (begin < part->end && std::max(end, begin + 1) > part->begin) marks[i] = kAssistantMark;
  }
  if (!marks.empty()) marks.front() |= kOpeningMark;
  return marks;
}

}  // namespace

std::optional<std::vector<ByteRange>> token_ranges(std::string_view text, std::span<const int32_t> ids,
                                                   const Tokenizer& tokenizer) {
  std::vector<ByteRange> ranges;
  size_t place = 0;
  for (const int32_t id : ids) {
    const std::string_view token = tokenizer.bytes(id);
    auto taken = bytes_taken(text.substr(place), token);
    if (!taken) {  // added tokens with lstrip or rstrip swallow white space
      place += white_space(text.substr(place));
      taken = bytes_taken(text.substr(place), token);
    }
    if (!taken) return std::nullopt;
    ranges.push_back({place, place + *taken});
    place += *taken;
  }
  if (place + white_space(text.substr(place)) != text.size()) return std::nullopt;
  return ranges;
}

EncodedText encode_chat(const RenderedChat& chat, const Tokenizer& tokenizer) {
  EncodedText encoded{.tokens = tokenizer.encode(chat.text, SpecialTokens::parse),
                      .bytes = static_cast<int64_t>(chat.text.size())};
  if (const auto ranges = token_ranges(chat.text, encoded.tokens, tokenizer)) {
    encoded.marks = marks_of(*ranges, chat.assistant);
  } else {
    const RenderedChat other = normalized(chat);
    const auto others = token_ranges(other.text, encoded.tokens, tokenizer);
    PRISM_CHECK(others, "chat",
                "expected a tokenizer whose tokens spell the text, but for spaces before it and NFC; found one that "
                "changes it otherwise; take another tokenizer, or change the text.");
    encoded.marks = marks_of(*others, other.assistant);
  }
  PRISM_CHECK(std::any_of(encoded.marks.begin(), encoded.marks.end(),
                          [](uint8_t mark) { return (mark & kAssistantMark) != 0; }),
              "chat",
              "expected tokens of the assistant to learn from; found none; add text to its messages, or remove the "
              "conversation.");
  return encoded;
}

}  // namespace prism
