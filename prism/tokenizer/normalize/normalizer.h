// What is done to a text before it is split: the `normalizer` of a `tokenizer.json`.
//
//   const Normalizer normalizer = Normalizer::from_json(file["normalizer"], "tokenizer.json");
//   normalizer.apply("a b", /*prepend=*/true, matcher)     // "▁a▁b" for Llama 2
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/tokenizer/split/regex.h"

namespace prism {

/// The steps in order; immutable, so threads can share them.
class Normalizer {
 public:
  Normalizer() = default;
  /// @param json    null, NFC, Prepend, Replace (String or Regex), or a Sequence of them.
  /// @param source  name of the file in messages.
  /// @throws InputError naming the kind that is not supported.
  static Normalizer from_json(const nlohmann::json& json, const std::string& source);

  bool empty() const { return steps_.empty(); }
  /// Whether the steps do nothing but replace every space by the marker, perhaps after putting a marker before the
  /// text. Such steps need not be carried out: SymbolTable takes spaces for markers.
  bool only_marks_spaces() const;
  /// Whether the last step replaces every space by the marker, so that no space is left.
  bool marks_spaces() const;
  /// Whether a step puts something before a text that is not empty.
  bool prepends() const;

  /// The normalized text.
  /// @param text     well-formed UTF-8.
  /// @param prepend  false leaves out the steps that put something before the text.
  std::string apply(std::string_view text, bool prepend, RegexMatcher& matcher) const;

  /// The steps as text, for the fingerprint; empty if there are none.
  std::string describe() const;

 private:
  struct Step {
    enum class Kind { nfc, prepend, replace_text, replace_regex };
    Kind kind = Kind::nfc;
    std::string pattern = {};  // for Kind::replace_text
    std::optional<Regex> regex = {};
    std::string content = {};
  };

  void add(const nlohmann::json& json, const std::string& source);
  static std::string run(const Step& step, std::string_view text, RegexMatcher& matcher);

  std::vector<Step> steps_;
};

}  // namespace prism
