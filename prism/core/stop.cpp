#include "prism/core/stop.h"

#include <csignal>

namespace prism {
namespace {

volatile std::sig_atomic_t caught = 0;

void remember(int signal) {
  if (caught != 0 && signal == SIGINT) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  caught = signal;
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = remember;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int stop_signal() {
  return caught;
}

}  // namespace prism
