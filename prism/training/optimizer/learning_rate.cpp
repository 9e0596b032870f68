#include "prism/training/optimizer/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "prism/core/text/names.h"

namespace prism {
namespace {

/// Falls from 1 at the peak to 0 at the final share.
using Fall = double (*)(const LearningRate& rate, double tokens);

double share_done(double tokens, double first, double last) {
  if (last <= first) return tokens > last ? 1 : 0;
  return std::clamp((tokens - first) / (last - first), 0.0, 1.0);
}

double cosine(const LearningRate& rate, double tokens) {
  return (1 + std::cos(std::numbers::pi * share_done(tokens, rate.warmup_tokens, rate.total_tokens))) / 2;
}

double linear(const LearningRate& rate, double tokens) {
  return 1 - share_done(tokens, rate.warmup_tokens, rate.total_tokens);
}

double warmup_stable_decay(const LearningRate& rate, double tokens) {
  return 1 - share_done(tokens, std::max(rate.warmup_tokens, rate.total_tokens - rate.decay_tokens), rate.total_tokens);
}

Fall find_fall(const std::string& name) {
  static const std::map<std::string, Fall> table = {
      {"cosine", cosine}, {"linear", linear}, {"wsd", warmup_stable_decay}};
  return find_by_name(table, name, "recipe", "lr_schedule");
}

}  // namespace

double LearningRate::at(double tokens) const {
  if (tokens < warmup_tokens || warmup_tokens >= total_tokens) return peak * std::min(1.0, tokens / warmup_tokens);
  return peak * (final_share + (1 - final_share) * find_fall(schedule)(*this, tokens));
}

void check_learning_rate_schedule(const std::string& name) {
  find_fall(name);
}

}  // namespace prism
