// The cores and memory that the process may use, and how long its threads wait for a core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace prism {

/// More threads than any machine needs; larger numbers are refused as slips.
constexpr int kMostThreads = 1024;

/// How many threads to use, and what limits the number.
struct ThreadLimit {
  int threads = 1;
  std::string reason;  ///< "affinity", "cgroup quota", "physical cores", "OMP_NUM_THREADS" or "--threads"
};

/// core_limit(), overridden by OMP_NUM_THREADS, which is overridden by `requested` if it is positive.
ThreadLimit thread_limit(int requested = 0);

/// How many threads can run at the same time: min(affinity, physical cores within it, cgroup CPU quota).
ThreadLimit core_limit();

/// Measures how long the threads of this process waited for a core because other programs, or more threads of this
/// process than there are cores, kept the cores busy.
class CoreWait {
 public:
  /// Above this share the cores count as busy, and times measured meanwhile as measured on a busy machine.
  static constexpr double kBusy = 0.1;

  /// Starts to measure.
  CoreWait();
  /// Waiting time divided by waiting plus running time, over all threads, since the last call or the constructor; 0..1.
  /// std::nullopt if Linux does not report the times or no thread ran.
  std::optional<double> share();

 private:
  struct Times {
    double running_s = 0, waiting_s = 0;
  };
  static Times now();

  Times last_;
};

/// "the cores are busy: threads waited 45% of the time for one".
std::string busy_text(double share);

/// For code that starts threads. @throws FailedError with the number of threads requested and the system's reason.
[[noreturn]] void fail_to_start_threads(int threads, const std::system_error& error);

/// The processor's name, "unknown" if the system does not report it.
std::string cpu_name();

/// Memory of the machine, or the limit of this process's cgroup if lower, in bytes.
int64_t total_memory_bytes();

/// Memory that this process can still take: what is free or can be freed, within the limits of its cgroup and of its
/// address space, in bytes.
int64_t available_memory_bytes();

/// Peak resident memory of this process so far, in bytes.
int64_t peak_memory_bytes();

}  // namespace prism
