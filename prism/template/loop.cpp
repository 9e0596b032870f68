#include "prism/template/loop.h"

namespace prism::jinja {

Loop::Loop(Rendering& run, const Value& items, std::function<bool(const Value&)> accepts)
    : items_(items), accepts_(std::move(accepts)), depth_(run.deeper(items.depth())) {
  if (!accepts_) length_ = items.length();
}

std::optional<Value> Loop::pull(Rendering& run) {
  while (auto item = items_.next(run)) {
    if (!accepts_ || accepts_(*item)) return item;
  }
  return std::nullopt;
}

const Value* Loop::peek(Rendering& run) {
  if (ahead_.empty()) {
    auto item = pull(run);
    if (!item) return nullptr;
    ahead_.push_back(std::move(*item));
  }
  return &ahead_.front();
}

std::optional<Value> Loop::next(Rendering& run) {
  std::optional<Value> item;
  if (ahead_.empty()) {
    item = pull(run);
  } else {
    item = std::move(ahead_.front());
    ahead_.pop_front();
  }
  if (!item) return item;
  ++index_;
  before_ = std::exchange(current_, item);
  return item;
}

int64_t Loop::length(Rendering& run) {
  if (!length_) {
    while (auto item = pull(run)) {
      run.check_items(static_cast<int64_t>(ahead_.size()));
      ahead_.push_back(std::move(*item));
    }
    length_ = index_ + 1 + static_cast<int64_t>(ahead_.size());
  }
  return *length_;
}

Value Loop::cycle(Rendering& run, const Arguments& arguments) const {
  if (arguments.positional.empty() || !arguments.named.empty())
    run.refuse("expected values for loop.cycle(); found none or names; give them in order.");
  return arguments.positional[static_cast<size_t>(index_) % arguments.positional.size()];
}

Value Loop::changed(Rendering& run, const Arguments& arguments) {
  const Value now = run.tuple(arguments.positional);
  // Kept, because the arguments may be this loop, or one that keeps another, and so on.
  if (!last_changed_) run.keep(shared_from_this(), [this] { last_changed_.reset(); });
  const bool is_new = !last_changed_ || !equal(run, *last_changed_, now);
  if (is_new) last_changed_ = now;
  return is_new;
}

std::optional<Value> Loop::attribute(Rendering& run, const std::string& name) {
  run.work();
  if (name == "index") return index_ + 1;
  if (name == "index0") return index_;
  if (name == "first") return index_ == 0;
  if (name == "last") return peek(run) == nullptr;
  if (name == "length") return length(run);
  if (name == "revindex") return length(run) - index_;
  if (name == "revindex0") return length(run) - index_ - 1;
  if (name == "depth") return int64_t{1};
  if (name == "depth0") return int64_t{0};
  if (name == "previtem") {
    return index_ > 0 && before_ ? *before_ : run.undefined("the item before the first one, which is undefined");
  }
  if (name == "nextitem") {
    const Value* following = peek(run);
    return following ? *following : run.undefined("the item after the last one, which is undefined");
  }
  if (name != "cycle" && name != "changed") return std::nullopt;
  const bool is_cycle = name == "cycle";
  return run.function(
      "the method loop." + name,
      [self = shared_from_this(), is_cycle](Rendering& later, const Arguments& arguments) {
        return is_cycle ? self->cycle(later, arguments) : self->changed(later, arguments);
      },
      depth_);
}

}  // namespace prism::jinja
