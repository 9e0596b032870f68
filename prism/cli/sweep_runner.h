// Trains the runs of a sweep as child processes, several at a time.
//
//   SweepRunner runner({.out = "runs/sweep", .jobs = 2}, sweep, runs);
//   if (!runner.run()) return 1;                                             // stopped by a signal, runs are saved
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "prism/core/progress.h"
#include "prism/core/timer.h"
#include "prism/training/sweep/sweep.h"

namespace prism {

struct SweepRunnerOptions {
  std::filesystem::path out;      ///< folder of the sweep, which has folders `logs` and `recipes`
  std::filesystem::path records;  ///< folder for copies of ended runs' recipes and records; empty: none
  int jobs = 1;                   ///< runs that train at the same time
  int threads = 1;                ///< of each run
  std::string device = "cpu";     ///< of all runs
  std::string name = "sweep";     ///< in messages
};

/// Trains the runs that a sweep still needs. They are killed if this process ends.
class SweepRunner {
 public:
  /// @param runs  from plan_sweep(), at least one; their states are updated.
  SweepRunner(SweepRunnerOptions options, const Sweep& sweep, std::vector<SweepRun>& runs);

  /// @return  false if a signal came before all runs were done. Runs that failed are in failures().
  bool run();
  /// A sentence for each run that failed.
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  struct Child {
    pid_t process = -1;
    size_t run = 0;
  };

  std::filesystem::path log_of(const SweepRun& run) const { return options_.out / "logs" / (run.name + ".txt"); }
  void start_next();
  void finish(const Child& child, int status);
  void keep(const SweepRun& run);
  bool stop();
  /// Tokens or examples of all runs.
  int64_t total() const;
  /// The same trained on so far.
  int64_t done() const;
  void show();

  const SweepRunnerOptions options_;
  const Sweep& sweep_;
  std::vector<SweepRun>& runs_;
  Progress progress_;
  std::vector<size_t> waiting_;  ///< indices of runs, the next one last
  std::vector<Child> children_;
  std::vector<std::string> failures_;
  Timer since_shown_;
  bool shown_ = false;
};

}  // namespace prism
