#include "prism/template/values/format_text.h"

#include <charconv>
#include <cmath>

#include "prism/template/values/characters.h"
#include "prism/template/values/print.h"

namespace prism::jinja {
namespace {

constexpr int64_t kMaxWidth = 10'000;

/// A conversion such as %-05.2f.
struct Conversion {
  bool left = false, zeros = false, plus = false, space = false;
  int64_t width = 0, precision = -1;
  char letter = 0;
};

int64_t read_number(Rendering& run, const std::string& format, size_t* at) {
  int64_t number = 0;
  for (; *at < format.size() && format[*at] >= '0' && format[*at] <= '9'; ++*at) {
    number = number * 10 + (format[*at] - '0');
    if (number > kMaxWidth) run.refuse("expected widths of at most {}; found more; use a smaller one.", kMaxWidth);
  }
  return number;
}

Conversion read_conversion(Rendering& run, const std::string& format, size_t* at) {
  Conversion found;
  for (; *at < format.size(); ++*at) {
    if (format[*at] == '-') {
      found.left = true;
    } else if (format[*at] == '0') {
      found.zeros = true;
    } else if (format[*at] == '+') {
      found.plus = true;
    } else if (format[*at] == ' ') {
      found.space = true;
    } else {
      break;
    }
  }
  found.width = read_number(run, format, at);
  if (*at < format.size() && format[*at] == '.') {
    ++*at;
    found.precision = read_number(run, format, at);
  }
  if (*at < format.size()) found.letter = format[(*at)++];
  if (found.letter == 0 || std::string_view("srdif%").find(found.letter) == std::string_view::npos)
    run.refuse("expected one of the conversions %s, %r, %d, %i, %f and %%; found {}; use one of these.",
               found.letter == 0 || static_cast<unsigned char>(found.letter) >= 0x80 ? std::string("another")
                                                                                     : std::string("%") + found.letter);
  return found;
}

void pad(std::string& digits, int64_t width) {
  const auto size = static_cast<int64_t>(digits.size());
  if (size < width) digits.insert(0, static_cast<size_t>(width - size), '0');
}

std::string converted_number(Rendering& run, const Conversion& conversion, const Value& value) {
  const auto real = value.real();
  if (!real) run.refuse("expected a number for %{}; found {}; use %s.", conversion.letter, value.kind());
  std::string digits;
  if (conversion.letter == 'f') {
    digits = fmt::format("{:.{}f}", std::abs(*real), conversion.precision < 0 ? 6 : conversion.precision);
  } else if (value.whole()) {
    const auto whole = static_cast<uint64_t>(*value.whole());
    digits = fmt::to_string(*value.whole() < 0 ? 0 - whole : whole);
  } else {
    if (!(std::abs(*real) < 9e18)) run.refuse("expected a number of 63 bits for %d; found {}; use %f.", *real);
    digits = fmt::to_string(static_cast<int64_t>(std::abs(std::trunc(*real))));
  }
  if (conversion.letter != 'f') pad(digits, conversion.precision);
  const bool negative = value.is<double>() && conversion.letter == 'f' ? std::signbit(*real) : *real < 0;
  const std::string sign = negative ? "-" : conversion.plus ? "+" : conversion.space ? " " : "";
  if (conversion.zeros && !conversion.left) pad(digits, conversion.width - static_cast<int64_t>(sign.size()));
  return sign + digits;
}

std::string converted(Rendering& run, const Conversion& conversion, const Value& value) {
  std::string text;
  if (conversion.letter == 's' || conversion.letter == 'r') {
    text = conversion.letter == 's' ? printed(run, value) : represented(run, value);
    if (conversion.precision >= 0) text.resize(offset_of_character(text, static_cast<size_t>(conversion.precision)));
  } else {
    text = converted_number(run, conversion, value);
  }
  const auto characters = static_cast<int64_t>(count_characters(text));
  if (characters < conversion.width)
    text.insert(conversion.left ? text.size() : 0, static_cast<size_t>(conversion.width - characters), ' ');
  return text;
}

const Value& field_value(Rendering& run, const std::string& name, const Arguments& arguments, int64_t* automatic) {
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  if (name.empty() || is_number) {
    const bool is_automatic = name.empty();
    if (*automatic != 0 && is_automatic != (*automatic > 0))
      run.refuse("expected fields that are all {{}} or all numbered; found both; use one kind.");
    if (is_automatic) {
      index = static_cast<size_t>((*automatic)++);
    } else {
      *automatic = -1;
    }
    if (index < arguments.positional.size()) return arguments.positional[index];
  } else {
    for (const auto& [key, value] : arguments.named) {
      if (key == name) return value;
    }
  }
  run.refuse("expected an argument of format() for every field; found none for {{{}}}; add it.", name);
}

}  // namespace

std::string format_percent(Rendering& run, const std::string& format, const Values& values) {
  std::string made;
  size_t used = 0;
  for (size_t at = 0; at < format.size();) {
    run.check_size(static_cast<int64_t>(made.size()));
    if (format[at] != '%') {
      made += format[at++];
      continue;
    }
    run.work();
    ++at;
    const Conversion conversion = read_conversion(run, format, &at);
    if (conversion.letter == '%') {
      made += '%';
      continue;
    }
    if (used == values.size())
      run.refuse("expected a value for every conversion of a format; found {}; add the others.", values.size());
    made += converted(run, conversion, values[used++]);
  }
  if (used != values.size() && !(values.size() == 1 && values[0].is<Dict>()))
    run.refuse("expected a conversion for every value of a format; found {} for {}; add the others.", used,
               values.size());
  return made;
}

std::string format_braces(Rendering& run, const std::string& format, const Arguments& arguments) {
  std::string made;
  int64_t automatic = 0;  // number of {} so far; -1 after a numbered field
  for (size_t at = 0; at < format.size(); ++at) {
    run.check_size(static_cast<int64_t>(made.size()));
    const char byte = format[at];
    if (byte != '{' && byte != '}') {
      made += byte;
      continue;
    }
    if (at + 1 < format.size() && format[at + 1] == byte) {
      made += byte;
      ++at;
      continue;
    }
    run.work();
    const size_t end = byte == '{' ? format.find('}', at) : std::string::npos;
    if (end == std::string::npos)
      run.refuse("expected fields in {{ and }} in a format; found a single brace; write it twice.");
    const std::string name = format.substr(at + 1, end - at - 1);
    if (name.size() > 100 || name.find_first_of("!:.[{") != std::string::npos)
      run.refuse("expected the fields {{}}, {{0}} or {{name}} in a format; found another; use the operator ~.");
    made += printed(run, field_value(run, name, arguments, &automatic));
    at = end;
  }
  return made;
}

}  // namespace prism::jinja
