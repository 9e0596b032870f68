#include "prism/core/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <ctime>

#include "prism/core/error.h"

namespace prism {
namespace {

bool quiet = false;

}  // namespace

void be_quiet() noexcept {
  quiet = true;
}

bool is_quiet() noexcept {
  return quiet;
}

void print_error_stream(std::string_view text) noexcept {
  // The reader may be gone, for instance the tee of a pipeline after Ctrl-C. SIGPIPE must not end the process then.
  sigset_t broken_pipe, before;
  ::sigemptyset(&broken_pipe);
  ::sigaddset(&broken_pipe, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &broken_pipe, &before);
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (std::fflush(stderr) != 0 || std::ferror(stderr) != 0) {
    const std::timespec now{};
    ::sigtimedwait(&broken_pipe, nullptr, &now);
  }
  std::clearerr(stderr);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void fail_output() {
  throw FailedError("output", "could not write to standard output, which is closed or full; redirect it to a file.");
}

void flush_output() {
  if (std::fflush(stdout) != 0) fail_output();
}

void open_standard_streams() noexcept {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() takes the lowest free number, which is this one, since those below are open by now. Standard output opens
    // read-only: then writing to it fails, and fflush() reports that instead of losing the text.
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace prism
