// What `loop` is inside a loop: its items one after another, and what it says about them.
//
//   Loop loop(items, accepts);
//   while (auto item = loop.next(run)) ...
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "prism/template/values/operations.h"

namespace prism::jinja {

class Loop : public Object, public std::enable_shared_from_this<Loop> {
 public:
  /// @param accepts  the loop's condition, may be empty
  Loop(Rendering& run, const Value& items, std::function<bool(const Value&)> accepts);

  /// The next item that the condition accepts.
  std::optional<Value> next(Rendering& run);

  std::string kind() const override { return "a loop"; }
  std::optional<Value> attribute(Rendering& run, const std::string& name) override;
  int depth() const override { return depth_; }

 private:
  std::optional<Value> pull(Rendering& run);
  const Value* peek(Rendering& run);
  int64_t length(Rendering& run);
  Value cycle(Rendering& run, const Arguments& arguments) const;
  Value changed(Rendering& run, const Arguments& arguments);

  Iterator items_;
  std::optional<int64_t> length_;
  std::function<bool(const Value&)> accepts_;
  std::deque<Value> ahead_;  ///< items that were looked at already
  int64_t index_ = -1;       ///< of the current item
  std::optional<Value> before_, current_;
  std::optional<Value> last_changed_;
  int depth_;
};

}  // namespace prism::jinja
