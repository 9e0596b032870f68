// Learning-rate schedules over tokens.
//
//   LearningRate rate{.schedule = "cosine", .peak = 6e-4, .warmup_tokens = 1e6, .total_tokens = 4e7};
//   optimizer.step(rate.at(tokens), norm);
#pragma once

#include <string>

namespace prism {

/// Linear warm-up, lr = peak n / warmup, then a decay from 1 to f = final_share of the peak:
///
///   cosine   f + (1 - f) (1 + cos(pi x)) / 2,   x = (n - warmup) / (total - warmup)
///   linear   1 - (1 - f) x
///   wsd      1 up to total - decay, then 1 - (1 - f) (n - total + decay) / decay   (warm-up, stable, decay). If the
///            warm-up ends after total - decay, the decay begins at its end and takes total - warmup.
///
/// n counts the tokens trained on, this step's included, so the first step's rate is not 0. Sources: cosine arXiv
/// 1608.03983; wsd arXiv 2404.06395. Differs: its decay is exponential, ours is linear.
struct LearningRate {
  std::string schedule = "cosine";
  double peak = 0, final_share = 0.1;
  double warmup_tokens = 0, decay_tokens = 0, total_tokens = 0;

  /// The learning rate at n tokens. @param tokens  n; values above the total count as the total.
  double at(double tokens) const;
};

/// @throws InputError for an unknown schedule; the message lists the known ones.
void check_learning_rate_schedule(const std::string& name);

}  // namespace prism
