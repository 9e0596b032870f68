// Learning-rate schedules over tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace prism {

/// Linear warm-up, then half a cosine down to `final_share` of the peak:
///
///   lr = peak n / warmup,                                             n < warmup or warmup >= total
///   lr = peak (f + (1 - f) (1 + cos(pi (n - warmup) / (total - warmup))) / 2),  else
///
/// @param tokens  n, tokens trained on when the step is done, so that the first step's rate is not 0.
inline double cosine_learning_rate(double peak, double final_share, double tokens, double warmup_tokens,
                                   double total_tokens) {
  if (tokens < warmup_tokens || warmup_tokens >= total_tokens) return peak * tokens / warmup_tokens;
  const double progress = std::min(1.0, (tokens - warmup_tokens) / (total_tokens - warmup_tokens));
  return peak * (final_share + (1 - final_share) * (1 + std::cos(std::numbers::pi * progress)) / 2);
}

}  // namespace prism
