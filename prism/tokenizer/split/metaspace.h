// The pre-tokenizer Metaspace, with which newer tokenizers in SentencePiece's manner mark spaces.
//
//   const Metaspace metaspace = Metaspace::from_json(file["pre_tokenizer"], source);
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace prism {

struct Metaspace {
  /// Where a marker is put before a text that does not begin with a space or marker: nowhere, only where the text
  /// begins the whole input, or before every text between added tokens.
  enum class Prepend { never, first, always };

  bool marks_spaces = false;  ///< replaces every space by the marker
  Prepend prepend = Prepend::never;
  bool split = false;  ///< every marker begins a piece

  /// @param json         null, Metaspace, a Sequence of one, or, if `spaces_are_gone`, a Split at spaces, which then
  ///                     does nothing.
  /// @param source       name of the file in messages.
  /// @throws InputError naming the unsupported kind or option.
  static Metaspace from_json(const nlohmann::json& json, bool spaces_are_gone, const std::string& source);

  /// Whether a marker is put before `text`, which is not empty. @param first  the text begins the whole input.
  bool prepends_to(std::string_view text, bool first) const;

  /// The options as text, for display and the fingerprint; "none" if it does nothing.
  std::string describe() const;
};

}  // namespace prism
