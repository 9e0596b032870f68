// Training speed: tokens or examples per second, whichever the training counts, and the share of the CPU's peak.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "prism/core/machine.h"

namespace prism {

class TrainingSpeed {
 public:
  TrainingSpeed() = default;
  /// @param flops_per_unit  FLOPs of training per token or example.
  /// @param peak_gflops     the CPU's peak; std::nullopt on a GPU.
  TrainingSpeed(double flops_per_unit, std::optional<double> peak_gflops)
      : flops_per_unit_(flops_per_unit), peak_gflops_(peak_gflops) {}

  /// Call when training starts or resumes. @param trained  tokens or examples so far. @param seconds  of steps only.
  void begin(int64_t trained, double seconds) {
    begun_ = logged_ = {trained, seconds};
    wait_ = CoreWait();
  }
  /// Tokens or examples per second since begin().
  double since_begin(int64_t trained, double seconds) const { return rate(begun_, trained, seconds); }
  /// The same since the last call or begin().
  double log(int64_t trained, double seconds) {
    const double found = rate(logged_, trained, seconds);
    logged_ = {trained, seconds};
    return found;
  }
  /// Share of time that threads waited for a core since the last call or begin() (core/machine.h).
  std::optional<double> log_wait() { return wait_.share(); }
  /// Returns true the first time that the share shows a busy machine.
  bool is_first_busy(const std::optional<double>& wait_share) {
    return wait_share.value_or(0) > CoreWait::kBusy && !std::exchange(was_busy_, true);
  }
  /// Tokens or examples at the last log().
  int64_t logged() const { return logged_.trained; }

  std::optional<double> peak_gflops() const { return peak_gflops_; }
  /// Share of the CPU's peak; std::nullopt on a GPU.
  /// @param rate  tokens or examples per second.
  std::optional<double> peak_share(double rate) const {
    if (!peak_gflops_) return std::nullopt;
    return rate * flops_per_unit_ / (*peak_gflops_ * 1e9);
  }

 private:
  struct Place {
    int64_t trained = 0;
    double seconds = 0;
  };
  static double rate(const Place& from, int64_t trained, double seconds) {
    return static_cast<double>(trained - from.trained) / (seconds - from.seconds);
  }

  double flops_per_unit_ = 0;
  std::optional<double> peak_gflops_;
  Place begun_, logged_;
  CoreWait wait_;
  bool was_busy_ = false;
};

}  // namespace prism
