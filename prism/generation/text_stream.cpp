#include "prism/generation/text_stream.h"

#include <algorithm>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/utf8.h"

namespace prism {

TextStream::TextStream(std::vector<std::string> stops) : stops_(std::move(stops)) {
  for (const auto& stop : stops_)
    PRISM_CHECK(!stop.empty(), "generate",
                "expected stop strings of at least one character; found an empty one; leave it out.");
}

std::string TextStream::push(std::string_view bytes) {
  if (stopped_) return "";
  pending_ += bytes;
  size_t first_stop = std::string::npos;
  for (const auto& stop : stops_) first_stop = std::min(first_stop, pending_.find(stop));
  if (first_stop != std::string::npos) {
    pending_.resize(first_stop);
    stopped_ = true;
    return finish();
  }
  const size_t free = pending_.size() - held_for_stops();
  const size_t ready = complete_utf8_prefix(std::string_view(pending_).substr(0, free));
  std::string shown = replace_invalid_utf8(std::string_view(pending_).substr(0, ready));
  pending_.erase(0, ready);
  return shown;
}

std::string TextStream::finish() {
  return replace_invalid_utf8(std::exchange(pending_, ""));
}

/// Length of the longest suffix of pending_ that is a prefix of a stop string.
size_t TextStream::held_for_stops() const {
  size_t held = 0;
  for (const std::string_view stop : stops_) {
    for (size_t length = std::min(pending_.size(), stop.size() - 1); length > held; --length) {
      if (pending_.ends_with(stop.substr(0, length))) held = length;
    }
  }
  return held;
}

}  // namespace prism
