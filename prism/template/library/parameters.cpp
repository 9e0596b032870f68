#include "prism/template/library/parameters.h"

#include <algorithm>

#include "prism/core/text/counted.h"

namespace prism::jinja {

Parameters::Parameters(Rendering& run, const Arguments& arguments, std::string_view callee,
                       std::initializer_list<std::string_view> names, size_t required)
    : run_(run), callee_(callee), values_(names.size(), nullptr) {
  if (arguments.positional.size() > names.size())
    run.refuse("expected at most {} of {}; found {}; remove the others.",
               counted(static_cast<int64_t>(names.size()), "argument"), callee, arguments.positional.size());
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto place = name.empty() ? names.end() : std::find(names.begin(), names.end(), name);
    if (place == names.end())
      run.refuse("expected an argument that {} knows; found {}; remove it.", callee, name.substr(0, 60));
    const auto index = static_cast<size_t>(place - names.begin());
    if (values_[index])
      run.refuse("expected the argument {} of {} once; found it twice; remove one of them.", name, callee);
    values_[index] = &value;
  }
  const auto missing = std::find(values_.begin(), values_.begin() + static_cast<ptrdiff_t>(required), nullptr);
  if (missing != values_.begin() + static_cast<ptrdiff_t>(required))
    run.refuse("expected {} of {}; found fewer; add the others.", counted(static_cast<int64_t>(required), "argument"),
               callee);
}

const Value* Parameters::other_than_none(size_t index) const {
  return values_[index] && !values_[index]->is<None>() ? values_[index] : nullptr;
}

int64_t Parameters::whole(size_t index, int64_t otherwise) const {
  if (!values_[index]) return otherwise;
  const auto number = values_[index]->whole();
  if (!number)
    run_.refuse("expected a whole number as an argument of {}; found {}; convert it with int.", callee_,
                values_[index]->kind());
  return *number;
}

bool Parameters::truth(size_t index, bool otherwise) const {
  return values_[index] ? values_[index]->truth() : otherwise;
}

const Text& Parameters::text(size_t index) const {
  const auto* text = values_[index]->as<Text>();
  if (!text)
    run_.refuse("expected text as an argument of {}; found {}; convert it with the filter string.", callee_,
                values_[index]->kind());
  return *text;
}

}  // namespace prism::jinja
