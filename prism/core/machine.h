// What the process may use of the machine, and the settings that must stand before the first kernel runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

namespace prism {

/// How many threads to use, and why not more.
struct ThreadLimit {
  int threads = 1;
  std::string reason;  ///< "affinity", "cgroup quota", "physical cores", "OMP_NUM_THREADS" or "--threads"
};

/// core_limit(); OMP_NUM_THREADS wins over that, `requested` (if > 0) over both.
ThreadLimit thread_limit(int requested = 0);

/// How many threads run at the same time: min(affinity, physical cores within it, cgroup CPU quota).
ThreadLimit core_limit();

/// How long the threads of this process waited for a core, because other programs, or more threads of its own than
/// there are cores, kept the cores busy.
class CoreWait {
 public:
  /// Above this share the cores count as busy, and times that were measured meanwhile as those of a busy machine.
  static constexpr double kBusy = 0.1;

  /// Begins to count.
  CoreWait();
  /// Waiting time over waiting and running time, of all threads together, 0..1, since the last call or the constructor;
  /// nothing where Linux does not say or no thread ran.
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

/// For who starts threads. @throws FailedError that says how many were asked for, and what the system answered.
[[noreturn]] void fail_to_start_threads(int threads, const std::system_error& error);

/// Sets what libraries read once: MKL_CBWR (equal bits whatever the alignment of a buffer), malloc
/// thresholds (a freed buffer stays mapped: page faults cost more than many kernels). Call it first in main().
void set_up_process();

/// The processor's own name, "unknown" where the system does not say.
std::string cpu_name();

/// Memory that the machine has, or that this process's cgroup may use, in bytes.
int64_t total_memory_bytes();

/// Peak resident memory of this process so far, in bytes.
int64_t peak_memory_bytes();

}  // namespace prism
