// Training speed: tokens per second, and the share of the CPU's peak.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "prism/core/machine.h"

namespace prism {

class TrainingSpeed {
 public:
  TrainingSpeed() = default;
  /// @param flops_per_token  FLOPs of training. @param peak_gflops  the CPU's peak; std::nullopt on a GPU.
  TrainingSpeed(double flops_per_token, std::optional<double> peak_gflops)
      : flops_per_token_(flops_per_token), peak_gflops_(peak_gflops) {}

  /// Call when training starts or resumes. @param tokens, seconds  trained so far; seconds counts steps only.
  void begin(int64_t tokens, double seconds) {
    begun_ = logged_ = {tokens, seconds};
    wait_ = CoreWait();
  }
  /// Tokens per second since begin().
  double since_begin(int64_t tokens, double seconds) const { return rate(begun_, tokens, seconds); }
  /// Tokens per second since the last call or begin().
  double log(int64_t tokens, double seconds) {
    const double found = rate(logged_, tokens, seconds);
    logged_ = {tokens, seconds};
    return found;
  }
  /// Share of time that threads waited for a core since the last call or begin() (core/machine.h).
  std::optional<double> log_wait() { return wait_.share(); }
  /// Returns true the first time that the share shows a busy machine.
  bool is_first_busy(const std::optional<double>& wait_share) {
    return wait_share.value_or(0) > CoreWait::kBusy && !std::exchange(was_busy_, true);
  }
  /// Tokens at the last log().
  int64_t logged_tokens() const { return logged_.tokens; }

  std::optional<double> peak_gflops() const { return peak_gflops_; }
  /// Share of the CPU's peak; std::nullopt on a GPU.
  std::optional<double> peak_share(double tokens_per_s) const {
    if (!peak_gflops_) return std::nullopt;
    return tokens_per_s * flops_per_token_ / (*peak_gflops_ * 1e9);
  }

 private:
  struct Place {
    int64_t tokens = 0;
    double seconds = 0;
  };
  static double rate(const Place& from, int64_t tokens, double seconds) {
    return static_cast<double>(tokens - from.tokens) / (seconds - from.seconds);
  }

  double flops_per_token_ = 0;
  std::optional<double> peak_gflops_;
  Place begun_, logged_;
  CoreWait wait_;
  bool was_busy_ = false;
};

}  // namespace prism
