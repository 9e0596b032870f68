#include "prism/report/draw/gnuplot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"

extern char** environ;

namespace prism {
namespace {

/// A file in memory for the child's input or output. It can have any size, while a pipe could fill up.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : descriptor_(::memfd_create(name, MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  void fill(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::write(descriptor_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      text.remove_prefix(static_cast<size_t>(count));
    }
    if (::lseek(descriptor_, 0, SEEK_SET) != 0) fail();
  }

  std::string content() const {
    std::string text;
    char buffer[1 << 14];
    for (;;) {
      const ssize_t count = ::pread(descriptor_, buffer, sizeof buffer, static_cast<off_t>(text.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      if (count == 0) return text;
      text.append(buffer, static_cast<size_t>(count));
    }
  }

 private:
  [[noreturn]] static void fail() {
    throw FailedError("plot", fmt::format("expected memory for gnuplot's data; found: {}; free some and run again.",
                                          std::strerror(errno)));
  }
  int descriptor_;
};

/// Runs the program with the three streams and waits. @return its exit status, 128 + signal, or -errno if it did not
/// start.
int run_program(const std::string& program, const MemoryFile& input, const MemoryFile& output,
                const MemoryFile& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.descriptor(), 0);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), 2);
  // -d: the user's start-up files must not change the drawing.
  std::string name = program, defaults = "-d";
  char* words[] = {name.data(), defaults.data(), nullptr};
  pid_t child = 0;
  const int code = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return -code;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string run_gnuplot(const std::string& program, std::string_view script) {
  MemoryFile input("plot-script"), output("plot-svg"), errors("plot-errors");
  input.fill(script);
  const int status = run_program(program, input, output, errors);
  if (status < 0) {
    throw FailedError("plot", fmt::format("expected gnuplot to draw the plots; found that \"{}\" does not start ({}); "
                                          "install it (Debian: apt-get install gnuplot-nox) and run again.",
                                          program, std::strerror(-status)));
  }
  std::string svg = output.content();
  if (status != 0 || svg.find("</svg>") == std::string::npos) {
    throw FailedError("plot", fmt::format("expected {} to draw a plot; found exit status {} and the message \"{}\"; "
                                          "check that it has the svg terminal.",
                                          program, status, plain_line(errors.content().substr(0, 300))));
  }
  return svg;
}

void check_gnuplot(const std::string& program) {
  run_gnuplot(program, "set terminal svg\nplot 0\n");
}

}  // namespace prism
