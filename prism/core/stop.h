// SIGINT, SIGTERM and SIGHUP as a question that long work asks between two steps, so that it can save what can be
// saved.
#pragma once

namespace prism {

/// From now on SIGINT, SIGTERM and SIGHUP (unless ignored, as under nohup) only set a flag; a SIGINT that comes two
/// seconds or more after the first signal ends the process at once.
void catch_stop_signals();
/// The signal caught so far, or 0.
int stop_signal();

}  // namespace prism
