// The arguments of a call by the parameter that they are for.
//
//   const Parameters given(run, arguments, "the filter indent", {"width", "first", "blank"});
//   const int64_t width = given.whole(0, 4);
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

class Parameters {
 public:
  /// @param callee    for messages: "the filter indent"
  /// @param names     of the parameters in order; "" for those that have none
  /// @param required  how many of the first ones must be given
  /// @throws InputError for missing, unknown and superfluous arguments
  Parameters(Rendering& run, const Arguments& arguments, std::string_view callee,
             std::initializer_list<std::string_view> names, size_t required = 0);

  /// The argument of a parameter, or null.
  const Value* operator[](size_t index) const { return values_[index]; }
  /// The argument, or null if there is none or it is none.
  const Value* other_than_none(size_t index) const;
  /// A whole number. @throws InputError for another kind
  int64_t whole(size_t index, int64_t otherwise) const;
  /// Python's truth of the argument.
  bool truth(size_t index, bool otherwise) const;
  /// A text. @throws InputError for another kind
  const Text& text(size_t index) const;

 private:
  Rendering& run_;
  std::string_view callee_;
  std::vector<const Value*> values_;
};

}  // namespace prism::jinja
