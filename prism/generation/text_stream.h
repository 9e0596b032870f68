// Turns the bytes of a stream of tokens into text that can be shown.
//
//   TextStream stream({"\n\n"});
//   while (!stream.stopped()) show(stream.push(tokenizer.bytes(next_id())));
//   show(stream.finish());
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace prism {

/// Holds back what a later token may still complete: a character split between two tokens, and the beginning of a stop
/// string. The output is always well-formed UTF-8: bytes that form no character are replaced by U+FFFD.
class TextStream {
 public:
  /// @param stops  the text ends before the first of these. @throws InputError for an empty stop string.
  explicit TextStream(std::vector<std::string> stops);

  /// Adds a token's bytes and returns the text that can be shown now. After stopped() it ignores its input.
  std::string push(std::string_view bytes);
  /// Ends the stream and returns the text that was held back.
  std::string finish();

  /// Returns true if a stop string has appeared.
  bool stopped() const { return stopped_; }

 private:
  size_t held_for_stops() const;

  std::vector<std::string> stops_;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace prism
