#include "prism/tokenizer/normalize/normalizer.h"

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/tokenizer/normalize/nfc.h"
#include "prism/tokenizer/space_marker.h"
#include "prism/tokenizer/split/stand_ins.h"
#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {
namespace {

using nlohmann::json;

constexpr size_t kShownNormalizer = 80;

std::string text_member(const json& object, const char* name, const std::string& source) {
  const auto found = object.find(name);
  PRISM_CHECK(found != object.end() && found->is_string(), "tokenizer",
              "{}: expected the normalizer {} to have a text \"{}\"; found none; give it one.", source,
              short_line(object.dump(), kShownNormalizer), name);
  return found->get<std::string>();
}

std::string replace_all(std::string_view text, std::string_view pattern, std::string_view content) {
  std::string out;
  out.reserve(text.size());
  size_t at = 0;
  for (size_t found; (found = text.find(pattern, at)) != std::string_view::npos; at = found + pattern.size()) {
    out += text.substr(at, found - at);
    out += content;
  }
  out += text.substr(at);
  return out;
}

std::string replace_matches(std::string_view text, const Regex& regex, std::string_view content,
                            RegexMatcher& matcher) {
  const auto stand_ins = regex.wants_stand_ins() ? with_stand_ins(text) : std::nullopt;
  const std::string_view searched = stand_ins ? std::string_view(*stand_ins) : text;
  std::string out;
  size_t at = 0;  // up to here the text is in `out`
  for (size_t start = 0; start <= text.size();) {
    const auto match = matcher.search(regex, searched, start);
    if (!match) break;
    out += text.substr(at, match->begin - at);
    out += content;
    at = start = match->end;
    if (match->end > match->begin) continue;
    // An empty match would be found again. The next search starts one character further.
    start = at < text.size() ? at + decode_character(text, at).length : at + 1;
  }
  out += text.substr(at);
  return out;
}

}  // namespace

Normalizer Normalizer::from_json(const json& value, const std::string& source) {
  Normalizer result;
  if (!value.is_null()) result.add(value, source);
  return result;
}

void Normalizer::add(const json& value, const std::string& source) {
  const json type = value.is_object() ? value.value("type", json()) : json();
  if (type == "Sequence") {
    const json parts = value.value("normalizers", json());
    PRISM_CHECK(parts.is_array(), "tokenizer", "{}: expected \"normalizers\" to be a list; found {}; give one.", source,
                parts.type_name());
    for (const auto& part : parts) {
      PRISM_CHECK(!part.is_object() || part.value("type", json()) != "Sequence", "tokenizer",
                  "{}: expected a Sequence of single normalizers; found one inside another; make it one list.", source);
      add(part, source);
    }
  } else if (type == "NFC") {
    steps_.push_back({.kind = Step::Kind::nfc});
  } else if (type == "Prepend") {
    steps_.push_back({.kind = Step::Kind::prepend, .content = text_member(value, "prepend", source)});
  } else if (type == "Replace") {
    const json pattern = value.value("pattern", json());
    const bool regex = pattern.is_object() && pattern.contains("Regex");
    PRISM_CHECK(pattern.is_object(), "tokenizer",
                "{}: expected the normalizer Replace to have a pattern {{\"String\": ...}} or {{\"Regex\": ...}}; "
                "found {}; give one.",
                source, short_line(pattern.dump(), kShownNormalizer));
    const std::string text = text_member(pattern, regex ? "Regex" : "String", source);
    const std::string content = text_member(value, "content", source);
    PRISM_CHECK(!text.empty(), "tokenizer",
                "{}: expected the normalizer Replace to have a pattern that is not empty; found \"\"; change it.",
                source);
    if (regex) {
      steps_.push_back({.kind = Step::Kind::replace_regex, .regex = Regex(text, source), .content = content});
    } else {
      steps_.push_back({.kind = Step::Kind::replace_text, .pattern = text, .content = content});
    }
  } else {
    throw InputError("tokenizer",
                     fmt::format("{}: expected a normalizer of the kinds NFC, Prepend and Replace; found {}; other "
                                 "kinds are not supported, choose another tokenizer.",
                                 source, type.is_null() ? short_line(value.dump(), kShownNormalizer) : type.dump()));
  }
}

bool Normalizer::marks_spaces() const {
  return !steps_.empty() && steps_.back().kind == Step::Kind::replace_text && steps_.back().pattern == " " &&
         steps_.back().content == kSpaceMarker;
}

bool Normalizer::only_marks_spaces() const {
  return marks_spaces() && (steps_.size() == 1 || (steps_.size() == 2 && steps_[0].kind == Step::Kind::prepend &&
                                                   steps_[0].content == kSpaceMarker));
}

bool Normalizer::prepends() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.kind == Step::Kind::prepend; });
}

std::string Normalizer::run(const Step& step, std::string_view text, RegexMatcher& matcher) {
  switch (step.kind) {
    case Step::Kind::nfc:
      return to_nfc(text);
    case Step::Kind::prepend:
      return text.empty() ? std::string() : step.content + std::string(text);
    case Step::Kind::replace_text:
      return replace_all(text, step.pattern, step.content);
    case Step::Kind::replace_regex:
      return replace_matches(text, *step.regex, step.content, matcher);
  }
  return std::string(text);
}

std::string Normalizer::apply(std::string_view text, bool prepend, RegexMatcher& matcher) const {
  std::string result(text);
  for (const Step& step : steps_) {
    if (prepend || step.kind != Step::Kind::prepend) result = run(step, result, matcher);
  }
  return result;
}

std::string Normalizer::describe() const {
  std::string words;
  for (const Step& step : steps_) {
    if (!words.empty()) words += " then ";
    switch (step.kind) {
      case Step::Kind::nfc:
        words += "NFC";
        break;
      case Step::Kind::prepend:
        words += "prepend " + step.content;
        break;
      case Step::Kind::replace_text:
        words += "replace " + step.pattern + " by " + step.content;
        break;
      case Step::Kind::replace_regex:
        words += "replace matches of " + step.regex->pattern() + " by " + step.content;
        break;
    }
  }
  return words;
}

}  // namespace prism
