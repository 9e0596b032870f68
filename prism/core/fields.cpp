#include "prism/core/fields.h"

#include <charconv>
#include <cmath>

#include "prism/core/files.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/utf8.h"

namespace prism {
namespace detail {
namespace {

/// Expands "4M" to "4000000" and so on; returns anything else unchanged.
std::string expand_suffix(std::string_view text) {
  if (text.size() < 2) return std::string(text);
  double factor = 0;
  switch (text.back()) {
    case 'k':
      factor = 1e3;
      break;
    case 'M':
      factor = 1e6;
      break;
    case 'G':
      factor = 1e9;
      break;
    default:
      return std::string(text);
  }
  double value = 0;
  const char* end = text.data() + text.size() - 1;
  const auto [next, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || next != end) return std::string(text);
  value *= factor;
  // 2.01M is 2010000, although 2.01 has no exact binary representation.
  const double whole = std::nearbyint(value);
  return fmt::format("{}", std::abs(value - whole) <= 1e-9 * std::abs(value) ? whole : value);
}

/// Parses a number in `range`, the text between the brackets of `path`.
int64_t parse_index(std::string_view text, std::string_view range, std::string_view path) {
  int64_t value = 0;
  const auto [next, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  PRISM_CHECK(code == std::errc() && next == text.data() + text.size() && value >= 0, "fields",
              "{}: expected [index] or [first-last]; found [{}]; write for instance [0-3].", path, range);
  return value;
}

std::string shown(const Json& json) {
  std::string text = to_text(json);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

}  // namespace

void fail_type(const std::string& path, std::string_view expected, const Json& found) {
  throw InputError("fields", fmt::format("{}: expected {}; found {}; change it.", path.empty() ? "the top level" : path,
                                         expected, shown(found)));
}

void fail_unknown(const std::string& owner, const std::string& name, const std::vector<std::string>& known) {
  const std::string near = nearest_name(name, known);
  throw InputError("fields", fmt::format("expected a {}; found \"{}\"; {}",
                                         owner.empty() ? "known field" : "field of " + owner, name,
                                         near.empty() ? fmt::format("the fields are {}.", join_names(known))
                                                      : fmt::format("did you mean \"{}\"?", near)));
}

void scalar_from_json(bool& value, const Json& json, const std::string& path) {
  if (!json.is_boolean()) fail_type(path, "true or false", json);
  value = json.get<bool>();
}

void scalar_from_json(int64_t& value, const Json& json, const std::string& path) {
  if (json.is_number_integer() && !(json.is_number_unsigned() && json.get<uint64_t>() > INT64_MAX)) {
    value = json.get<int64_t>();
  } else if (json.is_number() && std::nearbyint(json.get<double>()) == json.get<double>()) {
    const auto whole = json.get<double>();  // 4e6 is a whole number
    if (std::abs(whole) > 0x1p53) fail_type(path, "a whole number nearer to 0", json);
    value = static_cast<int64_t>(whole);
  } else {
    fail_type(path, "a whole number", json);
  }
}

void scalar_from_json(double& value, const Json& json, const std::string& path) {
  if (!json.is_number()) fail_type(path, "a number", json);
  value = json.get<double>();
}

void scalar_from_json(std::string& value, const Json& json, const std::string& path) {
  if (!json.is_string()) fail_type(path, "text", json);
  value = json.get<std::string>();
}

Json json_from_text(std::string_view text, bool wants_text) {
  if (wants_text) return Json(std::string(text));
  if (text == "on") return Json(true);
  if (text == "off") return Json(false);
  Json json = Json::parse(expand_suffix(text), nullptr, /*allow_exceptions=*/false);
  if (json.is_structured()) return parse_json(text, "the value");  // refuses members that are there twice
  if (!json.is_discarded()) return json;
  double value = 0;  // ".5" is a number to people, though not to JSON
  const auto [next, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && next == text.data() + text.size() && std::isfinite(value)) return Json(value);
  return Json(std::string(text));
}

PathStep split_path(std::string_view path, std::string_view whole) {
  PathStep step;
  const size_t dot = path.find('.');
  std::string_view head = path.substr(0, dot);
  if (dot != std::string_view::npos) step.rest = path.substr(dot + 1);
  if (const size_t bracket = head.find('['); bracket != std::string_view::npos) {
    PRISM_CHECK(head.back() == ']', "fields", "{}: expected a closing ]; found none; add it.", whole);
    const std::string_view range = head.substr(bracket + 1, head.size() - bracket - 2);
    const size_t dash = range.find('-');
    step.indexed = true;
    step.first = parse_index(range.substr(0, dash), range, whole);
    step.last = dash == std::string_view::npos ? step.first : parse_index(range.substr(dash + 1), range, whole);
    head = head.substr(0, bracket);
  }
  step.name = head;
  return step;
}

}  // namespace detail

void detail::fail_parse(std::string_view source, size_t byte, std::string_view text) {
  const size_t size = text.size(), invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos && invalid < byte)
    throw InputError("json", fmt::format("expected JSON in {}; found byte 0x{:02X} at offset {}, which is not UTF-8; "
                                         "convert the text, or name another file.",
                                         source, static_cast<uint8_t>(text[invalid]), invalid));
  throw InputError("json", fmt::format("expected JSON in {}; found {}; correct it.", source,
                                       byte > size ? fmt::format("a text that ends too early, after {}",
                                                                 counted(static_cast<int64_t>(size), "byte"))
                                                   : fmt::format("a fault at byte {} of {}", byte, size)));
}

void detail::fail_doubled(std::string_view source, const std::string& member) {
  throw InputError("json", fmt::format("expected every member once in {}; found {} twice; leave one out.", source,
                                       to_text(Json(member))));
}

void detail::check_json_text(std::string_view text, std::string_view source) {
  constexpr int kDeepest = 100;
  PRISM_CHECK(!text.empty(), "json", "expected JSON in {}; found nothing; restore the file, or name another.", source);
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      PRISM_CHECK(++depth <= kDeepest, "json", "expected JSON in {}; found more than {} levels of nesting; nest less.",
                  source, kDeepest);
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
}

std::string to_text(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json read_json(const std::string& path) {
  return parse_json(read_file(path), path);
}

}  // namespace prism
