// Catches SIGINT, SIGTERM and SIGHUP. Long work asks between two steps whether one has arrived, and saves its state.
#pragma once

#include <atomic>

namespace prism {

/// From now on SIGINT, SIGTERM and SIGHUP (unless ignored, as under nohup) only set a flag. A SIGINT that arrives two
/// seconds or more after the first signal ends the process at once.
void catch_stop_signals();
/// Signals act as before catch_stop_signals(), and stop_signal() is 0 again.
void release_stop_signals();
/// The signal caught so far, or 0 if none.
int stop_signal();
/// The same, and forgets it, so that work can go on.
int take_stop_signal();
/// @throws FailedError, with this operation, if a signal was caught.
void check_not_stopped(const char* operation);
/// Waits until reading from the descriptor does not wait. @param cancelled  if not null, another thread may set it.
/// @return  false if a signal was caught or `cancelled` was set before.
bool wait_to_read(int descriptor, const std::atomic<bool>* cancelled = nullptr);

}  // namespace prism
