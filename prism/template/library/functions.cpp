#include "prism/template/library/functions.h"

#include <algorithm>
#include <ctime>
#include <limits>
#include <map>

#include "prism/core/text/printable.h"
#include "prism/template/library/parameters.h"
#include "prism/template/values/operations.h"
#include "prism/template/values/print.h"

namespace prism::jinja {
namespace {

constexpr int64_t kMaxRange = 100'000;  // of Jinja2's sandbox

Value call_range(Rendering& run, const Arguments& arguments) {
  const Parameters given(run, arguments, "range()", {"", "", ""}, 1);
  Range range;
  const bool has_start = given[1] != nullptr;
  range.start = has_start ? given.whole(0, 0) : 0;
  range.stop = given.whole(has_start ? 1 : 0, 0);
  range.step = given.whole(2, 1);
  if (range.step == 0 || range.step == std::numeric_limits<int64_t>::min())
    run.refuse("expected a step of range() other than 0; found {}; change it.", range.step);
  if (range.size() > kMaxRange || range.size() < 0)
    run.refuse("expected a range of at most {} numbers; found a larger one; make it smaller.", kMaxRange);
  return range;
}

/// Python's dict(mapping, **named), of a dict or a list of pairs.
std::vector<std::pair<Value, Value>> entries_given(Rendering& run, const Arguments& arguments) {
  std::vector<std::pair<Value, Value>> entries;
  if (arguments.positional.size() > 1)
    run.refuse("expected one dict as an argument; found {}; remove the others.", arguments.positional.size());
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    if (const auto* dict = source.as<Dict>()) {
      entries = dict->entries();
    } else {
      for (const auto& item : items_of(run, source)) {
        const Values pair = items_of(run, item);
        if (pair.size() != 2) run.refuse("expected pairs to make a dict of; found {} items; make it two.", pair.size());
        entries.emplace_back(pair[0], pair[1]);
      }
    }
  }
  for (const auto& [name, value] : arguments.named) entries.emplace_back(run.text(name), value);
  return entries;
}

Value call_dict(Rendering& run, const Arguments& arguments) {
  return run.dict(entries_given(run, arguments));
}

Value call_namespace(Rendering& run, const Arguments& arguments) {
  auto made = std::make_shared<Namespace>();
  run.keep(made, [made] { made->clear(); });
  for (const auto& [name, value] : entries_given(run, arguments)) {
    const auto* text = name.as<Text>();
    if (!text) run.refuse("expected texts as the names of a namespace; found {}; use texts.", name.kind());
    made->set(run, text->bytes(), value);
  }
  return ObjectPointer(made);
}

Value call_raise(Rendering& run, const Arguments& arguments) {
  const Parameters given(run, arguments, "raise_exception()", {"message"}, 1);
  run.refuse("expected messages that the template accepts; found ones that it refuses with \"{}\"; change them.",
             plain_line(printed(run, *given[0])));
}

Value call_time(Rendering& run, const Arguments& arguments) {
  const Parameters given(run, arguments, "strftime_now()", {"format"}, 1);
  const std::string& format = given.text(0).bytes();
  const std::time_t now = run.now();
  std::tm local = {};
  localtime_r(&now, &local);
  std::string made;
  for (size_t at = 0; at < format.size(); ++at) {
    run.check_size(static_cast<int64_t>(made.size()));
    if (format[at] != '%') {
      made += format[at];
      continue;
    }
    // One conversion at a time, since those of the C library have options for widths without limit.
    std::string conversion = "%";
    if (++at < format.size() && format[at] == '-') conversion += format[at++];
    if (at >= format.size() ||
        std::string_view("aAbBcdHIjmMpSUwWxXyYZz%GeFTDuVhRk").find(format[at]) == std::string_view::npos)
      run.refuse("expected conversions such as %Y, %m or %d in a date; found another; use these.");
    conversion += format[at];
    char buffer[128];
    run.work();
    made.append(buffer, std::strftime(buffer, sizeof(buffer), conversion.c_str(), &local));
  }
  return run.text(std::move(made));
}

}  // namespace

std::optional<Value> Namespace::attribute(Rendering& run, const std::string& name) {
  run.work();
  const auto row = attributes_.find(name);
  if (row == attributes_.end() || name.starts_with('_')) return std::nullopt;
  return row->second;
}

void Namespace::set(Rendering& run, const std::string& name, const Value& value) {
  run.work(sizeof(Value) + name.size());
  if (name.starts_with('_'))
    run.refuse("expected attributes of a namespace without an underscore before; found one; rename it.");
  attributes_[name] = value;
}

std::optional<Value> find_function(Rendering& run, const std::string& name) {
  using Body = Value (*)(Rendering&, const Arguments&);
  static const std::map<std::string, Body> kFunctions = {{"dict", call_dict},
                                                         {"namespace", call_namespace},
                                                         {"raise_exception", call_raise},
                                                         {"range", call_range},
                                                         {"strftime_now", call_time}};
  if (const auto row = kFunctions.find(name); row != kFunctions.end())
    return run.function(fmt::format("the function {}", name), row->second);
  if (name == "cycler" || name == "joiner" || name == "lipsum")
    run.refuse(
        "expected one of the functions dict, namespace, raise_exception, range and strftime_now; found {}; write "
        "the template without it.",
        name);
  return std::nullopt;
}

}  // namespace prism::jinja
