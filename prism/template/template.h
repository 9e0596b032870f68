// Chat templates of language models: the part of Jinja2 that they use, rendered as transformers renders it.
//
//   const Template chat = Template::parse(config["chat_template"]);
//   std::string prompt = chat.render({{"messages", messages}, {"add_generation_prompt", true}});
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/core/json.h"
#include "prism/template/limits.h"

namespace prism {

namespace jinja {
struct Syntax;
}

struct RenderOptions {
  RenderLimits limits = {};
  std::optional<std::time_t> now = {};  ///< of strftime_now(), which gives the local time; none: the current time
  /// Receives the ranges of the output that {% generation %} blocks wrote, in order, unless null. With ranges, such
  /// blocks must not be inside macros, other generation blocks, or blocks of call, filter and set.
  std::vector<ByteRange>* generated = nullptr;
};

/// A parsed template. Copies are cheap, and may render at the same time in different threads.
///
/// Rendering equals jinja2's ImmutableSandboxedEnvironment as transformers 5 sets it up: trim_blocks, lstrip_blocks,
/// break and continue, {% generation %}, raise_exception(), strftime_now() and its own tojson. What differs:
///
/// - Refused by name: block, extends, import, include, autoescape, recursive loops, * and ** in calls, cycler, joiner,
///   lipsum, filters and methods that no chat template uses, integers of over 63 bits, names that are not ASCII.
/// - Values that Python prints with an address (functions, generators), and namespaces, are refused where printed.
class Template {
 public:
  /// @throws InputError naming the line, what was expected and what was found
  static Template parse(std::string_view text);

  /// The text of the template for the given variables. Transformers sets messages, tools, documents and
  /// add_generation_prompt, the former to null if there are none, and the special tokens, such as bos_token.
  /// @param values  an object; dicts keep the order of its members
  /// @throws InputError for a wrong template, for values that it refuses with raise_exception(), and beyond a limit
  std::string render(const Json& values, const RenderOptions& options = {}) const;

 private:
  explicit Template(std::shared_ptr<const jinja::Syntax> syntax) : syntax_(std::move(syntax)) {}

  std::shared_ptr<const jinja::Syntax> syntax_;
};

}  // namespace prism
