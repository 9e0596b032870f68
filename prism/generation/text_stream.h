// The bytes of one token after another in, text that may be shown out.
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

/// Holds back what a later token may still complete: a character cut between two tokens, and the beginning of a stop
/// string. All that comes out is well-formed UTF-8, whatever the tokens are: bytes that form no character are replaced
/// by U+FFFD.
class TextStream {
 public:
  /// @param stops  the text ends before the first of these. @throws InputError for an empty one.
  explicit TextStream(std::vector<std::string> stops);

  /// Adds a token's bytes; returns what may be shown now. After stopped() nothing is taken or returned.
  std::string push(std::string_view bytes);
  /// What was held back, when nothing follows.
  std::string finish();

  /// Whether a stop string has appeared.
  bool stopped() const { return stopped_; }

 private:
  size_t held_for_stops() const;

  std::vector<std::string> stops_;
  std::string pending_;
  bool stopped_ = false;
};

}  // namespace prism
