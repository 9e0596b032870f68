// Runs a part of a test in a child process, for work that is killed or that needs limits the test itself must not have.
//
//   ChildProcess child([&](const std::function<void()>& ready) { lock(); ready(); ::pause(); });
//   child.wait_until_ready();  ...  child.kill();
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>

namespace prism {

/// Runs `body` in a forked process. The exit status is 0 if body returns, 99 if it throws.
class ChildProcess {
 public:
  explicit ChildProcess(const std::function<void(const std::function<void()>& ready)>& body) {
    if (::pipe(pipe_) != 0) throw std::runtime_error("no pipe");
    id_ = ::fork();
    if (id_ < 0) throw std::runtime_error("no process");
    if (id_ > 0) {
      ::close(pipe_[1]);
      return;
    }
    int status = 0;
    try {
      body([this] {
        if (::write(pipe_[1], "r", 1) != 1) ::_exit(98);
      });
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      status = 99;
    }
    // Skips destructors: those of the test framework belong to the parent.
    ::_exit(status);
  }
  ~ChildProcess() {
    kill();
    ::close(pipe_[0]);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Returns false if the child ended without calling ready().
  bool wait_until_ready() {
    char byte = 0;
    return ::read(pipe_[0], &byte, 1) == 1;
  }

  /// Sends SIGKILL and waits until the child has ended.
  void kill() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    wait();
  }

  /// Returns the exit status, or minus the number of the signal that ended the child.
  int wait() {
    int status = 0;
    ::waitpid(id_, &status, 0);
    id_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  pid_t id() const { return id_; }

 private:
  int pipe_[2] = {-1, -1};
  pid_t id_ = -1;
};

}  // namespace prism
