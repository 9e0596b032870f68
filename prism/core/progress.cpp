#include "prism/core/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "prism/core/console.h"

namespace prism {
namespace {

constexpr const char* kClearLine = "\r\033[K";
constexpr double kTerminalInterval_s = 0.2, kPlainInterval_s = 10;

}  // namespace

Progress::Progress(std::string what, int64_t total, std::string unit, int64_t start)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      total_(total),
      start_(start),
      terminal_(::isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  clear();
}

void Progress::update(int64_t done, std::string_view detail) {
  if (is_quiet()) return;
  const double now = timer_.seconds();
  if (now - last_ < (terminal_ ? kTerminalInterval_s : kPlainInterval_s)) return;
  last_ = now;
  start_ = std::min(start_, done);
  const double rate = static_cast<double>(done - start_) / now;
  std::string line = what_ + " ";
  if (total_ > 0) line += fmt::format("{:3.0f}% ", 100.0 * static_cast<double>(done) / static_cast<double>(total_));
  line += fmt::format("{}{} {}{}/s", short_number(static_cast<double>(done)), unit_, short_number(rate), unit_);
  if (total_ > 0 && rate > 0) line += fmt::format(" ETA {}", short_duration(static_cast<double>(total_ - done) / rate));
  if (!detail.empty()) line += fmt::format(" | {}", detail);
  if (terminal_) print_error_stream(kClearLine);
  say("{}{}", line, terminal_ ? "" : "\n");
  shown_ = terminal_;
}

void Progress::note(std::string_view line) {
  clear();
  tell("{}\n", line);
}

void Progress::finish(std::string_view line) {
  note(line);
}

void Progress::clear() {
  if (shown_) print_error_stream(kClearLine);
  shown_ = false;
}

std::string short_number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1000) return fmt::format("{:.0f}", value);
  // Round before choosing the unit: 999,950 is 1.00M, not 1000k.
  const double rounded = std::strtod(fmt::format("{:.2e}", value).c_str(), nullptr);
  const double size = std::abs(rounded);
  if (size < 1) return fmt::format("{:.3g}", rounded);
  double factor = 1;
  std::string_view suffix;
  for (const auto& [next, name] : {std::pair{1e3, "k"}, {1e6, "M"}, {1e9, "G"}}) {
    if (size >= next) factor = next, suffix = name;
  }
  const int decimals = size >= 100 * factor ? 0 : size >= 10 * factor ? 1 : 2;
  return fmt::format("{:.{}f}{}", rounded / factor, decimals, suffix);
}

std::string short_duration(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::min(std::max(0.0, seconds), 1e15)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace prism
