// Python's arithmetic on values, and access to items and slices.
//
//   Value sum = arithmetic(run, Operator::add, left, right);
#pragma once

#include <optional>

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

enum class Operator { add, subtract, multiply, divide, floor_divide, modulo, power };

/// Python's left OP right. Integers have 63 bits; larger ones are refused. Adding to text that is marked safe escapes.
Value arithmetic(Rendering& run, Operator operation, const Value& left, const Value& right);

/// Python's -value and, after the same check, +value, which is the value itself.
Value negated(Rendering& run, const Value& value);
void check_number(Rendering& run, const Value& value, const char* sign);

/// Python's value[index], or nothing if there is no such item.
std::optional<Value> item_of(Rendering& run, const Value& value, const Value& index);

/// Bounds of a slice. What is absent is none.
struct Slice {
  Value start = None{}, stop = None{}, step = None{};
};

/// Python's value[start:stop:step], of text, lists, tuples and ranges.
Value slice_of(Rendering& run, const Value& value, const Slice& slice);

/// HTML-safe text: & < > ' " as the entities that Jinja2 writes. Text that is safe already stays as it is.
Value escaped(Rendering& run, const Value& value);

}  // namespace prism::jinja
