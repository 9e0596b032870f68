// A progress line on stderr. On a terminal it is rewritten in place; elsewhere a new line is printed every ten seconds.
// be_quiet() (core/console.h) turns it off.
//
//   Progress progress("tokenize", total_bytes, "B");
//   progress.update(done_bytes, "1,204 documents");   // cheap: most calls print nothing
//   progress.finish("12.3 M tokens in 4 shards");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "prism/core/timer.h"

namespace prism {

class Progress {
 public:
  /// @param total  in units of `unit`; 0 if unknown (then neither percentage nor ETA is shown).
  /// @param start  work done before, by a resumed run; does not count towards the rate. If update() reports less,
  ///               because work was lost and is redone, the rate counts from there.
  Progress(std::string what, int64_t total, std::string unit, int64_t start = 0);
  /// Clears an unfinished terminal line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(int64_t done, std::string_view detail = {});
  /// Prints a separate line above the progress line.
  void note(std::string_view line);
  /// Replaces the progress line with a final line.
  void finish(std::string_view line);

 private:
  void clear();

  std::string what_, unit_;
  int64_t total_, start_;
  bool terminal_, shown_ = false;
  double last_ = 0;
  Timer timer_;
};

/// Three significant digits: "1.20k", "34.5M", "678G"; whole numbers below 1000 unchanged.
std::string short_number(double value);
/// "42 s", "3 min 05 s", "2 h 07 min".
std::string short_duration(double seconds);

}  // namespace prism
