// Text as words: lower case, with punctuation apart.
//
//   WordText words;
//   words("The U.S. won, 3:2!") == "the u . s . won , 3 : 2 !"
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace prism {

/// Lowers the case of letters of Unicode's classes Lu and Lt that have one lower-case letter, puts spaces around
/// punctuation and symbols (Unicode's classes P and S), and replaces each run of white space by one space. Applying it
/// twice changes nothing. Texts that differ only in how they were tokenised become equal.
class WordText {
 public:
  WordText();
  /// @param text  UTF-8.
  std::string operator()(std::string_view text) const;

 private:
  class Patterns;
  std::shared_ptr<const Patterns> patterns_;
};

}  // namespace prism
