#include "prism/tokenizer/split/pretokenizer.h"

#include <algorithm>
#include <map>

#include "prism/core/error.h"
#include "prism/tokenizer/split/scanner.h"
#include "prism/tokenizer/split/stand_ins.h"
#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {
namespace {

using nlohmann::json;
using Kind = SplitStep::Kind;

constexpr size_t kPiecesAtOnce = 2048;

SplitStep step_for_pattern(const std::string& pattern, const std::string& source) {
  static const std::map<std::string_view, Kind> scanners = {
      {kGpt2Pattern, Kind::gpt2}, {kLlama3Pattern, Kind::llama3}, {kQwen2Pattern, Kind::qwen2}};
  if (auto row = scanners.find(pattern); row != scanners.end()) return {row->second, std::nullopt};
  return {Kind::regex, Regex(pattern, source)};
}

/// A regular expression that matches exactly this text.
std::string quote(const std::string& text) {
  std::string quoted;
  for (const char byte : text) {
    if (std::string_view(R"(\^$.|?*+()[]{}-#)").find(byte) != std::string_view::npos) quoted += '\\';
    quoted += byte;
  }
  return quoted;
}

std::string kind_of(const json& value) {
  const auto type = value.is_object() ? value.find("type") : value.end();
  return value.is_object() && type != value.end() && type->is_string() ? type->get<std::string>() : value.dump();
}

bool flag(const json& object, const char* name, bool otherwise) {
  const auto member = object.find(name);
  return member != object.end() && member->is_boolean() ? member->get<bool>() : otherwise;
}

SplitStep split_step(const json& split, const std::string& source) {
  const std::string behavior = split.value("behavior", json("nothing")).dump();
  PRISM_CHECK(behavior == "\"Isolated\"" && !flag(split, "invert", false), "tokenizer",
              "{}: expected a Split whose behavior is \"Isolated\", not inverted; found behavior {}, invert {}; other "
              "kinds are not supported, choose another tokenizer.",
              source, behavior, flag(split, "invert", false));
  const json pattern = split.value("pattern", json());
  const bool regex = pattern.is_object() && pattern.contains("Regex") && pattern["Regex"].is_string();
  const bool text = pattern.is_object() && pattern.contains("String") && pattern["String"].is_string();
  PRISM_CHECK(regex || text, "tokenizer",
              "{}: expected a Split with a pattern {{\"Regex\": ...}} or {{\"String\": ...}}; found {}; give one.",
              source, pattern.dump());
  if (regex) return step_for_pattern(pattern["Regex"].get<std::string>(), source);
  const std::string literal = pattern["String"].get<std::string>();
  PRISM_CHECK(!literal.empty(), "tokenizer", "{}: expected a Split whose pattern is not empty; found \"\"; change it.",
              source);
  return {Kind::regex, Regex(quote(literal), source)};
}

bool want_stand_ins(const std::vector<SplitStep>& steps) {
  const auto refuses = [](const SplitStep& step) { return step.regex && !step.regex->wants_stand_ins(); };
  return std::any_of(steps.begin(), steps.end(), [](const SplitStep& step) { return step.regex.has_value(); }) &&
         std::none_of(steps.begin(), steps.end(), refuses);
}

/// Appends one step. Returns true if it was ByteLevel, which must be the last.
bool add_step(const json& part, const std::string& source, std::vector<SplitStep>& steps) {
  const std::string kind = kind_of(part);
  if (kind == "ByteLevel") {
    PRISM_CHECK(
        !flag(part, "add_prefix_space", true), "tokenizer",
        "{}: expected ByteLevel with \"add_prefix_space\": false; found true; tokenizers that put a space before "
        "every text are not supported; choose another tokenizer.",
        source);
    if (flag(part, "use_regex", true)) steps.push_back({Kind::gpt2, std::nullopt});
    return true;
  }
  if (kind == "Split") {
    steps.push_back(split_step(part, source));
  } else if (kind == "Digits") {
    steps.push_back({flag(part, "individual_digits", false) ? Kind::single_digits : Kind::digit_runs, std::nullopt});
  } else {
    throw InputError("tokenizer", fmt::format("{}: expected a pre_tokenizer of the kinds ByteLevel, Split and Digits; "
                                              "found {}; only byte-level BPE tokenizers are supported, choose one.",
                                              source, kind));
  }
  return false;
}

}  // namespace

Pretokenizer Pretokenizer::from_json(const json& value, const std::string& source) {
  Pretokenizer result;
  const json parts = kind_of(value) == "Sequence" ? value.value("pretokenizers", json::array()) : json::array({value});
  PRISM_CHECK(parts.is_array(), "tokenizer", "{}: expected \"pretokenizers\" to be a list; found {}; give one.", source,
              parts.type_name());
  bool byte_level = false;
  for (const auto& part : parts) {
    PRISM_CHECK(!byte_level, "tokenizer",
                "{}: expected ByteLevel to be the last pre_tokenizer; found {} after it; move it to the end.", source,
                kind_of(part));
    byte_level = add_step(part, source, result.steps_);
  }
  PRISM_CHECK(byte_level, "tokenizer",
              "{}: expected a pre_tokenizer that ends in ByteLevel; found {}; only byte-level BPE tokenizers are "
              "supported, choose one.",
              source, kind_of(value));
  return result;
}

Pretokenizer Pretokenizer::from_pattern(const std::string& pattern) {
  return from_json(json::parse(json_for_pattern(pattern)), "--pattern");
}

std::string Pretokenizer::json_for_pattern(const std::string& pattern) {
  PRISM_CHECK(!pattern.empty(), "tokenizer",
              "expected a pattern: gpt2, llama3 or a regular expression; found none; choose one of them.");
  const std::string byte_level = R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":)";
  if (pattern == "gpt2") return byte_level + "true}";
  const std::string regex = pattern == "llama3" ? std::string(kLlama3Pattern) : pattern;
  return R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)" + json(regex).dump() +
         R"(},"behavior":"Isolated","invert":false},)" + byte_level + "false}]}";
}

std::string Pretokenizer::describe() const {
  std::string words;
  for (const auto& step : steps_) {
    if (!words.empty()) words += " then ";
    switch (step.kind) {
      case Kind::gpt2:
        words += kGpt2Pattern;
        break;
      case Kind::llama3:
        words += kLlama3Pattern;
        break;
      case Kind::qwen2:
        words += kQwen2Pattern;
        break;
      case Kind::digit_runs:
        words += "runs of digits";
        break;
      case Kind::single_digits:
        words += "single digits";
        break;
      case Kind::regex:
        words += step.regex->pattern();
        break;
    }
  }
  return words.empty() ? "none" : words;
}

size_t Pretokenizer::safe_cut(std::string_view text, size_t wanted) const {
  const bool known = steps_.size() == 1 &&
                     (steps_[0].kind == Kind::gpt2 || steps_[0].kind == Kind::llama3 || steps_[0].kind == Kind::qwen2);
  if (!known) return text.size();
  // In all three patterns a run of letters ends before a space, and none of them looks behind.
  const auto letter = [](char byte) { return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'); };
  for (size_t at = wanted; at < text.size(); ++at) {
    if (at > 0 && text[at] == ' ' && letter(text[at - 1])) return at;
  }
  return text.size();
}

PieceCursor::PieceCursor(const Pretokenizer& pretokenizer, std::string_view text, RegexMatcher& matcher)
    : steps_(pretokenizer.steps()),
      stand_ins_(want_stand_ins(steps_) ? with_stand_ins(text) : std::nullopt),
      text_(stand_ins_ ? std::string_view(*stand_ins_) : text),
      matcher_(matcher) {}

bool PieceCursor::next(std::vector<size_t>& ends) {
  ends.clear();
  while (at_ < text_.size() && ends.size() < kPiecesAtOnce) {
    if (steps_.empty()) {
      ends.push_back(at_ = text_.size());
      break;
    }
    const size_t end = piece_end(steps_[0], text_, at_);
    if (steps_.size() == 1) {
      ends.push_back(end);
    } else {
      split(1, at_, end, ends);
    }
    at_ = end;
  }
  return !ends.empty();
}

void PieceCursor::split(size_t step, size_t begin, size_t end, std::vector<size_t>& ends) {
  // Inside a piece a step sees only the piece: it neither looks behind nor ahead of it.
  const std::string_view piece = text_.substr(begin, end - begin);
  for (size_t at = 0; at < piece.size();) {
    const size_t stop = piece_end(steps_[step], piece, at);
    if (step + 1 == steps_.size()) {
      ends.push_back(begin + stop);
    } else {
      split(step + 1, begin + at, begin + stop, ends);
    }
    at = stop;
  }
}

size_t PieceCursor::piece_end(const SplitStep& step, std::string_view text, size_t start) {
  switch (step.kind) {
    case Kind::gpt2:
      return gpt2_piece_end(text, start);
    case Kind::llama3:
      return llama3_piece_end(text, start, 3);
    case Kind::qwen2:
      return llama3_piece_end(text, start, 1);
    case Kind::digit_runs:
      return digits_piece_end(text, start, /*individual=*/false);
    case Kind::single_digits:
      return digits_piece_end(text, start, /*individual=*/true);
    case Kind::regex:
      return regex_piece_end(*step.regex, text, start);
  }
  return text.size();
}

size_t PieceCursor::regex_piece_end(const Regex& regex, std::string_view text, size_t start) {
  auto match = matcher_.search(regex, text, start);
  // An empty match at the start splits off nothing; a match after the first character may.
  if (match && match->end == start) match = matcher_.search(regex, text, start + decode_character(text, start).length);
  if (!match) return text.size();
  // Both the matches and the text between them are pieces ("Isolated").
  return match->begin > start ? match->begin : match->end;
}

}  // namespace prism
