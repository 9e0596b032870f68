// SIGINT and SIGTERM as a question that long work asks between two steps, so that it can save what can be saved.
#pragma once

namespace prism {

/// From now on the first SIGINT or SIGTERM only sets a flag; a second SIGINT ends the process at once.
void catch_stop_signals();
/// The signal caught so far, or 0.
int stop_signal();

}  // namespace prism
