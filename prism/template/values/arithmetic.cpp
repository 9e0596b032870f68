#include "prism/template/values/arithmetic.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "prism/template/values/characters.h"
#include "prism/template/values/format_text.h"
#include "prism/template/values/operations.h"
#include "prism/template/values/print.h"

namespace prism::jinja {
namespace {

constexpr const char* kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void refuse_operands(Rendering& run, Operator operation, const Value& left, const Value& right) {
  run.refuse("expected operands that `{}` can take, such as two numbers; found {} and {}; convert one of them.",
             kSigns[static_cast<int>(operation)], left.kind(), right.kind());
}

[[noreturn]] void refuse_overflow(Rendering& run) {
  run.refuse("expected whole numbers within 63 bits; found a result beyond; use smaller numbers or floats.");
}

void check_divisor(Rendering& run, bool is_zero) {
  if (is_zero) run.refuse("expected a divisor other than 0; found 0; check for it first.");
}

int64_t power_of(Rendering& run, int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (bool used = false;; used = true) {
    // The square is needed only while bits of the exponent are left.
    if (used && __builtin_mul_overflow(base, base, &base)) refuse_overflow(run);
    if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) refuse_overflow(run);
    exponent >>= 1;
    if (exponent == 0) return result;
  }
}

int64_t floor_quotient(Rendering& run, int64_t left, int64_t right) {
  if (left == std::numeric_limits<int64_t>::min() && right == -1) refuse_overflow(run);
  return left / right - (left % right != 0 && (left < 0) != (right < 0));
}

double float_power(Rendering& run, double base, double exponent) {
  if (base == 0 && exponent < 0) run.refuse("expected a base other than 0 for a negative power; found 0; change it.");
  const double result = std::pow(base, exponent);
  if (std::isnan(result) && !std::isnan(base) && !std::isnan(exponent))
    run.refuse("expected a power that is a real number; found a negative base and a fraction; change one of them.");
  if (std::isinf(result) && !std::isinf(base) && !std::isinf(exponent))
    run.refuse("expected a power that a float can hold; found a larger one; use smaller numbers.");
  return result;
}

Value of_integers(Rendering& run, Operator operation, int64_t left, int64_t right) {
  int64_t result = 0;
  switch (operation) {
    case Operator::add:
      if (__builtin_add_overflow(left, right, &result)) refuse_overflow(run);
      return result;
    case Operator::subtract:
      if (__builtin_sub_overflow(left, right, &result)) refuse_overflow(run);
      return result;
    case Operator::multiply:
      if (__builtin_mul_overflow(left, right, &result)) refuse_overflow(run);
      return result;
    case Operator::divide:
      check_divisor(run, right == 0);
      return static_cast<double>(left) / static_cast<double>(right);
    case Operator::floor_divide:
      check_divisor(run, right == 0);
      return floor_quotient(run, left, right);
    case Operator::modulo:
      check_divisor(run, right == 0);
      if (right == -1) return int64_t{0};
      result = left % right;
      return result != 0 && (result < 0) != (right < 0) ? result + right : result;
    case Operator::power:
      if (right < 0) return float_power(run, static_cast<double>(left), static_cast<double>(right));
      return power_of(run, left, right);
  }
  return result;
}

Value of_floats(Rendering& run, Operator operation, double left, double right) {
  switch (operation) {
    case Operator::add:
      return left + right;
    case Operator::subtract:
      return left - right;
    case Operator::multiply:
      return left * right;
    case Operator::power:
      return float_power(run, left, right);
    case Operator::divide:
      check_divisor(run, right == 0);
      return left / right;
    default:
      break;
  }
  check_divisor(run, right == 0);
  double rest = std::fmod(left, right);
  if (rest != 0 && (rest < 0) != (right < 0)) rest += right;
  if (rest == 0) rest = std::copysign(0.0, right);
  if (operation == Operator::modulo) return rest;
  const double quotient = (left - rest) / right;
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

Value repeated(Rendering& run, const Value& value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  int64_t size = 0;
  if (const auto* text = value.as<Text>()) {
    if (__builtin_mul_overflow(static_cast<int64_t>(text->bytes().size()), times, &size))
      size = std::numeric_limits<int64_t>::max();
    run.check_size(size);
    std::string bytes;
    if (size == 0) times = 0;
    for (int64_t i = 0; i < times; ++i) bytes += text->bytes();
    return run.text(std::move(bytes), text->safe);
  }
  const auto& list = *value.as<List>();
  if (__builtin_mul_overflow(static_cast<int64_t>(list.items().size()), times, &size))
    size = std::numeric_limits<int64_t>::max();
  run.check_items(size);
  Values items;
  if (size == 0) times = 0;
  for (int64_t i = 0; i < times; ++i) items.insert(items.end(), list.items().begin(), list.items().end());
  return run.list(std::move(items), list.is_tuple);
}

/// Sums of texts and of lists, and repetitions; nothing for other operands.
std::optional<Value> of_sequences(Rendering& run, Operator operation, const Value& left, const Value& right) {
  const auto *left_text = left.as<Text>(), *right_text = right.as<Text>();
  const auto *left_list = left.as<List>(), *right_list = right.as<List>();
  if (operation == Operator::multiply && (left_text || left_list) && right.whole())
    return repeated(run, left, *right.whole());
  if (operation == Operator::multiply && (right_text || right_list) && left.whole())
    return repeated(run, right, *left.whole());
  if (operation != Operator::add) return std::nullopt;
  if (left_text && right_text) {
    if (left_text->safe != right_text->safe)
      return of_sequences(run, operation, escaped(run, left), escaped(run, right));
    run.check_size(static_cast<int64_t>(left_text->bytes().size() + right_text->bytes().size()));
    return run.text(left_text->bytes() + right_text->bytes(), left_text->safe);
  }
  if (left_list && right_list && left_list->is_tuple == right_list->is_tuple) {
    run.check_items(static_cast<int64_t>(left_list->items().size() + right_list->items().size()));
    Values items = left_list->items();
    items.insert(items.end(), right_list->items().begin(), right_list->items().end());
    return run.list(std::move(items), left_list->is_tuple);
  }
  return std::nullopt;
}

/// Bounds of a slice of `size` items, as Python's slice.indices().
struct Bounds {
  int64_t start = 0, stop = 0, step = 1, count = 0;
};

Bounds bounds_of(Rendering& run, const Slice& slice, int64_t size) {
  const auto bound = [&](const Value& value, int64_t otherwise) {
    if (value.is<None>()) return otherwise;
    const auto number = value.whole();
    if (!number) run.refuse("expected whole numbers in a slice; found {}; convert it with int.", value.kind());
    return *number;
  };
  const int64_t step = bound(slice.step, 1);
  if (step == 0) run.refuse("expected a step other than 0 in a slice; found 0; change it.");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto clamped = [&](int64_t number) { return std::clamp(number < 0 ? number + size : number, low, high); };
  Bounds bounds;
  bounds.step = step;
  bounds.start = slice.start.is<None>() ? (step > 0 ? low : high) : clamped(bound(slice.start, 0));
  bounds.stop = slice.stop.is<None>() ? (step > 0 ? high : low) : clamped(bound(slice.stop, 0));
  bounds.count = Range{bounds.start, bounds.stop, step}.size();
  return bounds;
}

Value slice_of_text(Rendering& run, const Text& text, const Slice& slice) {
  const Bounds bounds = bounds_of(run, slice, text.characters());
  const auto& bytes = text.bytes();
  run.work(bytes.size());
  const auto start = static_cast<size_t>(bounds.start), count = static_cast<size_t>(bounds.count);
  if (count == 0) return run.text("", text.safe);
  if (bounds.step == 1) {
    if (text.is_ascii()) return run.text(bytes.substr(start, count), text.safe);
    const size_t first = offset_of_character(bytes, start);
    const size_t size = offset_of_character(std::string_view(bytes).substr(first), count);
    return run.text(bytes.substr(first, size), text.safe);
  }
  std::vector<size_t> offsets;  // of each character, and the end
  for (size_t at = 0; at < bytes.size(); next_character(bytes, &at)) offsets.push_back(at);
  offsets.push_back(bytes.size());
  std::string made;
  for (int64_t i = 0; i < bounds.count; ++i) {
    const auto at = static_cast<size_t>(bounds.start + i * bounds.step);
    made.append(bytes, offsets[at], offsets[at + 1] - offsets[at]);
  }
  return run.text(std::move(made), text.safe);
}

}  // namespace

Value arithmetic(Rendering& run, Operator operation, const Value& left, const Value& right) {
  run.work();
  if (const auto* text = left.as<Text>(); text && operation == Operator::modulo) {
    if (text->safe) refuse_operands(run, operation, left, right);
    const auto* list = right.as<List>();
    return run.text(format_percent(run, text->bytes(), list && list->is_tuple ? list->items() : Values{right}));
  }
  if (left.whole() && right.whole()) return of_integers(run, operation, *left.whole(), *right.whole());
  if (left.real() && right.real()) return of_floats(run, operation, *left.real(), *right.real());
  if (auto made = of_sequences(run, operation, left, right)) return *made;
  refuse_operands(run, operation, left, right);
}

void check_number(Rendering& run, const Value& value, const char* sign) {
  if (!value.real()) run.refuse("expected a number after `{}`; found {}; convert it first.", sign, value.kind());
}

Value negated(Rendering& run, const Value& value) {
  check_number(run, value, "-");
  if (value.whole()) return of_integers(run, Operator::subtract, 0, *value.whole());
  return -*value.real();
}

std::optional<Value> item_of(Rendering& run, const Value& value, const Value& index) {
  if (const auto* dict = value.as<Dict>()) {
    if (!is_hashable(run, index)) return std::nullopt;
    const Value* found = find_value(run, *dict, index);
    return found ? std::optional(*found) : std::nullopt;
  }
  const auto* text = value.as<Text>();
  const auto* list = value.as<List>();
  const auto* range = value.as<Range>();
  if ((!text && !list && !range) || !index.whole()) return std::nullopt;
  const int64_t size = *value.length();
  const int64_t place = *index.whole() < 0 ? *index.whole() + size : *index.whole();
  if (place < 0 || place >= size) return std::nullopt;
  if (text) return slice_of_text(run, *text, {place, place + 1, None{}});
  if (list) return list->items()[static_cast<size_t>(place)];
  return (*range)[place];
}

Value slice_of(Rendering& run, const Value& value, const Slice& slice) {
  if (const auto* text = value.as<Text>()) return slice_of_text(run, *text, slice);
  if (const auto* list = value.as<List>()) {
    const Bounds bounds = bounds_of(run, slice, *value.length());
    Values items;
    for (int64_t i = 0; i < bounds.count; ++i)
      items.push_back(list->items()[static_cast<size_t>(bounds.start + i * bounds.step)]);
    return run.list(std::move(items), list->is_tuple);
  }
  if (const auto* range = value.as<Range>()) {
    const Bounds bounds = bounds_of(run, slice, range->size());
    const auto place = [&](int64_t index) {
      int64_t distance = 0, number = 0;
      if (__builtin_mul_overflow(index, range->step, &distance) ||
          __builtin_add_overflow(range->start, distance, &number))
        refuse_overflow(run);
      return number;
    };
    int64_t step = 0;
    if (__builtin_mul_overflow(range->step, bounds.step, &step)) refuse_overflow(run);
    return Range{place(bounds.start), place(bounds.stop), step};
  }
  run.refuse("expected text or a list before a slice; found {}; slice one of these.", value.kind());
}

Value escaped(Rendering& run, const Value& value) {
  const auto* text = value.as<Text>();
  if (text && text->safe) return value;
  std::string made;
  for (const char byte : text ? text->bytes() : printed(run, value)) {
    switch (byte) {
      case '&':
        made += "&amp;";
        break;
      case '<':
        made += "&lt;";
        break;
      case '>':
        made += "&gt;";
        break;
      case '\'':
        made += "&#39;";
        break;
      case '"':
        made += "&#34;";
        break;
      default:
        made += byte;
    }
  }
  return run.text(std::move(made), true);
}

}  // namespace prism::jinja
