#include "prism/core/stop.h"

#include <poll.h>

#include <cerrno>
#include <csignal>
#include <ctime>

#include "prism/core/error.h"

namespace prism {
namespace {

volatile std::sig_atomic_t caught = 0;
volatile std::time_t caught_at = 0;  // seconds, monotonic

std::time_t now() {
  std::timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec;
}

void remember(int signal) {
  // Two signals in quick succession are one request: a wrapper may forward what the whole group received.
  constexpr std::time_t kTogether_s = 2;
  if (caught != 0 && signal == SIGINT && now() - caught_at >= kTogether_s) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  if (caught == 0) caught_at = now();
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
  // The terminal has gone away. Under nohup the signal is ignored and stays ignored.
  struct sigaction hang_up {};
  ::sigaction(SIGHUP, nullptr, &hang_up);
  if (hang_up.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);
}

void release_stop_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == remember) std::signal(signal, SIG_DFL);
  }
  caught = 0;
}

int stop_signal() {
  return caught;
}

int take_stop_signal() {
  const int signal = caught;
  if (signal != 0) caught = 0;
  return signal;
}

void check_not_stopped(const char* operation) {
  if (stop_signal() != 0) throw FailedError(operation, "stopped by a signal; no figure was computed.");
}

bool wait_to_read(int descriptor, const std::atomic<bool>* cancelled) {
  constexpr int kPatience_ms = 200;
  pollfd request{.fd = descriptor, .events = POLLIN, .revents = 0};
  for (;;) {
    const int ready = ::poll(&request, 1, kPatience_ms);
    if (ready > 0 || (ready < 0 && errno != EINTR)) return true;  // read() says what is wrong
    if (stop_signal() != 0 || (cancelled != nullptr && *cancelled)) return false;
  }
}

}  // namespace prism
