// One rendering of a template: its limits, its output and the line it is at. Everything that makes values takes it.
//
//   Rendering run(limits);
//   run.work(bytes.size());        // counts the effort, and throws beyond the limit
//   return run.text(bytes + "!");  // counts the memory, and throws beyond the limit
//   run.refuse("expected a list; found {}; correct the template.", value.kind());
#pragma once

#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/template/limits.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

inline constexpr int kMaxValueDepth = 200;         ///< of lists in lists
inline constexpr int kMaxEvaluationDepth = 1'500;  ///< of evaluated parts within each other, through macros as well
inline constexpr int64_t kMaxObjects = 100'000;    ///< namespaces, scopes of macros, loops with changed()

class Rendering {
 public:
  Rendering(const RenderLimits& limits, std::time_t now) : limits_(limits), now_(now) {}
  Rendering(const Rendering&) = delete;
  Rendering& operator=(const Rendering&) = delete;

  /// Throws an InputError that begins with the current line of the template.
  template <class... Parts>
  [[noreturn]] void refuse(fmt::format_string<Parts...> form, Parts&&... parts) const {
    throw InputError("template", fmt::format("line {}: {}", line, fmt::format(form, std::forward<Parts>(parts)...)));
  }

  /// Counts one step, and one more for every 256 of `size` bytes or items that it reads.
  void work(size_t size = 0) {
    steps_ += 1 + static_cast<int64_t>(size / 256);
    if (steps_ > limits_.steps) refuse_steps();
  }
  /// Refuses a text or list of more than value_bytes before it is made.
  void check_size(int64_t bytes) const {
    if (bytes > limits_.value_bytes) refuse_size();
  }
  /// Refuses a list of more than value_bytes before it is made.
  void check_items(int64_t count) const {
    if (count > limits_.value_bytes / static_cast<int64_t>(sizeof(Value))) refuse_size();
  }

  /// A text. @param bytes  well-formed UTF-8
  Value text(std::string bytes, bool safe = false);
  Value list(Values items, bool is_tuple = false);
  Value tuple(Values items) { return list(std::move(items), true); }
  /// A dict. Of entries with equal keys, the first keeps its place and gets the last one's value.
  Value dict(const std::vector<std::pair<Value, Value>>& entries);
  /// @param inside  the depth of the values that `next` holds
  Value generator(int inside, std::function<std::optional<Value>(Rendering&)> next);
  Value function(std::string kind, Function::Body body, int inside = 0);
  Value undefined(std::string why);

  /// One level more than `inside`. @throws InputError if that is too deep.
  int deeper(int inside) const;
  /// Appends to the output, which may be a capture.
  void write(std::string_view bytes);
  /// Keeps an object or scope until the end, so that chains of them are never freed recursively.
  void keep(std::shared_ptr<void> kept, std::function<void()> clear);
  /// Lets go of what was kept. Ends cycles between namespaces, macros, scopes and loops.
  void clear();

  std::time_t now() const { return now_; }

  int line = 1;                                 ///< of the template, for messages
  int depth = 0;                                ///< of the evaluation
  std::string* output = nullptr;                ///< where write() appends
  bool is_captured = false;                     ///< the output becomes a value first, as in a macro
  std::vector<ByteRange>* generated = nullptr;  ///< receives what generation blocks wrote, if not null

 private:
  [[noreturn]] void refuse_steps() const;
  [[noreturn]] void refuse_size() const;
  void spend(size_t bytes);

  RenderLimits limits_;
  std::time_t now_;
  int64_t steps_ = 0, bytes_ = 0;
  std::vector<std::pair<std::shared_ptr<void>, std::function<void()>>> kept_;
};

/// Redirects the output into `text` for its life time.
class Capture {
 public:
  explicit Capture(Rendering& run) : run_(run), outer_(run.output), outer_captured_(run.is_captured) {
    run.output = &text;
    run.is_captured = true;
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    run_.output = outer_;
    run_.is_captured = outer_captured_;
  }

  std::string text;

 private:
  Rendering& run_;
  std::string* outer_;
  bool outer_captured_;
};

}  // namespace prism::jinja
