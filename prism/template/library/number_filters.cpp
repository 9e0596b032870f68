// The filters that make numbers, and attr.
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "prism/core/text/blanks.h"
#include "prism/template/library/filters.h"
#include "prism/template/library/members.h"
#include "prism/template/library/parameters.h"
#include "prism/template/library/text_pieces.h"
#include "prism/template/values/arithmetic.h"

namespace prism::jinja {
namespace {

constexpr int64_t kMaxPrecision = 20;

/// Digits without the single underscores between them, which Python allows; nothing if others are there.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string digits;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      digits += text[i];
    } else if (i == 0 || i + 1 == text.size() || !std::isalnum(static_cast<unsigned char>(text[i - 1])) ||
               !std::isalnum(static_cast<unsigned char>(text[i + 1]))) {
      return std::nullopt;
    }
  }
  return digits;
}

/// Python's int(text, base), or nothing where it raises ValueError.
std::optional<int64_t> parse_whole(Rendering& run, std::string_view text, int64_t base) {
  text = stripped(text, nullptr, true, true);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const std::string lower(text.substr(0, 2));
  const char letter = lower.size() == 2 && lower[0] == '0' ? static_cast<char>(lower[1] | 0x20) : '\0';
  const int64_t named = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
  if (named != 0 && (base == named || base == 0)) {
    base = named;
    text.remove_prefix(text.size() > 2 && text[2] == '_' ? 3 : 2);
  } else if (base == 0) {
    base = 10;
    if (text.size() > 1 && text[0] == '0' && text.find_first_not_of("0_") != std::string_view::npos)
      return std::nullopt;
  }
  const auto digits = without_underscores(text);
  if (!digits || digits->empty() || !std::isalnum(static_cast<unsigned char>((*digits)[0]))) return std::nullopt;
  int64_t number = 0;
  const std::string signed_digits = (negative ? "-" : "") + *digits;
  const auto [end, error] = std::from_chars(signed_digits.data(), signed_digits.data() + signed_digits.size(), number,
                                            static_cast<int>(base));
  if (end != signed_digits.data() + signed_digits.size()) return std::nullopt;
  if (error != std::errc())
    run.refuse("expected whole numbers within 63 bits; found a larger one; use the filter float.");
  return number;
}

/// Python's float(text), or nothing where it raises ValueError.
std::optional<double> parse_real(std::string_view text) {
  text = stripped(text, nullptr, true, true);
  const auto digits = without_underscores(text);
  if (!digits || digits->empty()) return std::nullopt;
  std::string_view rest = *digits;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  std::string word(rest.substr(0, 9));
  for (char& letter : word) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const bool is_word = rest.size() == word.size() && (word == "inf" || word == "infinity" || word == "nan");
  if (!is_word && rest.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  if (rest.empty() || (!is_word && !std::isdigit(static_cast<unsigned char>(rest[0])) && rest[0] != '.'))
    return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(digits->c_str(), &end);
  if (end != digits->c_str() + digits->size()) return std::nullopt;
  return number;
}

std::optional<int64_t> truncated(Rendering& run, double number) {
  if (std::isnan(number) || std::isinf(number)) return std::nullopt;
  if (!(std::abs(number) < 9.2e18))
    run.refuse("expected whole numbers within 63 bits; found {}; leave it a float.", number);
  return static_cast<int64_t>(number);
}

[[noreturn]] void refuse_number(Rendering& run, const Value& input) {
  run.refuse("expected a number; found {}; give it a default first.", input.kind());
}

Value filter_int(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter int", {"default", "base"});
  Value otherwise = given[0] ? *given[0] : Value(int64_t{0});
  if (input.is<Undefined>()) refuse_number(run, input);
  if (const auto number = input.whole()) return *number;
  std::optional<double> real = input.real();
  if (const auto* text = input.as<Text>()) {
    run.work(text->bytes().size());
    const int64_t base = given.whole(1, 10);
    if (base != 0 && (base < 2 || base > 36)) return otherwise;
    if (const auto number = parse_whole(run, text->bytes(), base)) return *number;
    real = parse_real(text->bytes());
  }
  const auto number = real ? truncated(run, *real) : std::nullopt;
  return number ? Value(*number) : otherwise;
}

Value filter_float(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter float", {"default"});
  Value otherwise = given[0] ? *given[0] : Value(0.0);
  if (input.is<Undefined>()) refuse_number(run, input);
  if (const auto number = input.real()) return *number;
  const auto* text = input.as<Text>();
  if (!text) return otherwise;
  run.work(text->bytes().size());
  const auto number = parse_real(text->bytes());
  return number ? Value(*number) : otherwise;
}

Value filter_abs(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter abs", {});
  if (!input.real()) refuse_number(run, input);
  if (const auto whole = input.whole()) return *whole < 0 ? negated(run, *whole) : Value(*whole);
  return std::abs(*input.real());
}

/// Rounds half to even on the exact value, as Python does.
double rounded(double number, int64_t precision) {
  if (std::isnan(number) || std::isinf(number)) return number;
  return std::strtod(fmt::format("{:.{}f}", number, static_cast<int>(precision)).c_str(), nullptr);
}

Value filter_round(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter round", {"precision", "method"});
  const int64_t precision = given.whole(0, 0);
  const std::string method = given[1] ? given.text(1).bytes() : "common";
  if (method != "common" && method != "ceil" && method != "floor")
    run.refuse("expected a method of round that is common, ceil or floor; found another; use one of them.");
  if (precision < 0 || precision > kMaxPrecision)
    run.refuse("expected a precision from 0 to {}; found {}; use one of these.", kMaxPrecision, precision);
  if (!input.real()) refuse_number(run, input);
  if (method == "common") {
    if (const auto whole = input.whole()) return *whole;
    return rounded(*input.real(), precision);
  }
  const Value scale = arithmetic(run, Operator::power, int64_t{10}, precision);
  const double scaled = *arithmetic(run, Operator::multiply, input, scale).real();
  const auto whole = truncated(run, method == "ceil" ? std::ceil(scaled) : std::floor(scaled));
  if (!whole) refuse_number(run, input);
  return arithmetic(run, Operator::divide, *whole, scale);
}

Value filter_attr(Rendering& run, const Value& input, const Arguments& arguments) {
  const Parameters given(run, arguments, "the filter attr", {"name"}, 1);
  const std::string& name = given.text(0).bytes();
  if (auto found = find_attribute(run, input, name)) return *found;
  return run.undefined("an attribute, which is undefined");
}

}  // namespace

FilterTable number_filters() {
  return {{"abs", filter_abs},
          {"attr", filter_attr},
          {"float", filter_float},
          {"int", filter_int},
          {"round", filter_round}};
}

}  // namespace prism::jinja
