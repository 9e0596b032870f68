// Learning-rate schedules over tokens.
//
//   LearningRate rate{.schedule = "cosine", .peak = 6e-4, .warmup_tokens = 1e6, .total_tokens = 4e7};
//   optimizer.step(rate.at(tokens), norm);
#pragma once

#include <string>

namespace prism {

/// Linear warm-up, lr = peak n / warmup, then a fall from 1 to f = final_share of the peak along
///
///   cosine   f + (1 - f) (1 + cos(pi x)) / 2,   x = (n - warmup) / (total - warmup)
///   linear   1 - (1 - f) x
///   wsd      1 up to total - decay, then 1 - (1 - f) (n - total + decay) / decay   (warm-up, stable, decay); where the
///            warm-up ends later than that, the fall begins there and takes total - warmup
///
/// with n the tokens trained on when the step is done, so that the first step's rate is not 0. Sources: cosine arXiv
/// 1608.03983; wsd arXiv 2404.06395, whose decay is exponential where ours is linear.
struct LearningRate {
  std::string schedule = "cosine";
  double peak = 0, final_share = 0.1;
  double warmup_tokens = 0, decay_tokens = 0, total_tokens = 0;

  /// @param tokens  n. Beyond the total: as at the total.
  double at(double tokens) const;
};

/// @throws InputError naming the schedules there are.
void check_learning_rate_schedule(const std::string& name);

}  // namespace prism
