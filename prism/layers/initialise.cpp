#include "prism/layers/initialise.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"
#include "prism/core/random.h"

namespace prism {
namespace {

at::Generator generator_of(uint64_t seed, std::string_view name) {
  uint64_t key = mix64(seed + 1);
  for (const char c : name) key = mix64(key ^ static_cast<uint8_t>(c)) + 0x9E3779B97F4A7C15u;
  return at::make_generator<at::CPUGeneratorImpl>(key);
}

void draw_gpt2(const WeightEntry& entry, const Initialisation& options, uint64_t seed) {
  const auto& values = entry.weight.tensor();
  if (entry.traits.role == WeightRole::bias) {
    values.zero_();
    return;
  }
  const double share = entry.traits.into_stream ? 1 / std::sqrt(2.0 * static_cast<double>(options.layers)) : 1;
  initialise_normal(values, options.std * share, seed, entry.name);
}

void draw_ladder(const WeightEntry& entry, const Initialisation& options, uint64_t seed) {
  const auto& values = entry.weight.tensor();
  const auto& traits = entry.traits;
  if (traits.role == WeightRole::table) return initialise_normal(values, 1, seed, entry.name);
  if (traits.feed_forward)
    return initialise_uniform(values, 1 / std::sqrt(static_cast<double>(traits.fan_in)), seed, entry.name);
  if (traits.role == WeightRole::bias) {
    values.zero_();
    return;
  }
  initialise_normal(values, 1 / std::sqrt(static_cast<double>(std::min(traits.fan_in, options.d_model))), seed,
                    entry.name);
}

}  // namespace

void initialise_normal(torch::Tensor values, double std, uint64_t seed, std::string_view name) {
  torch::NoGradGuard no_gradients;
  values.copy_(torch::empty_like(values, torch::kCPU).normal_(0.0, std, generator_of(seed, name)));
}

void initialise_uniform(torch::Tensor values, double bound, uint64_t seed, std::string_view name) {
  torch::NoGradGuard no_gradients;
  values.copy_(torch::empty_like(values, torch::kCPU).uniform_(-bound, bound, generator_of(seed, name)));
}

void initialise(const std::vector<WeightEntry>& weights, const Initialisation& initialisation, uint64_t seed) {
  const bool ladder = initialisation.scheme == "ladder";
  PRISM_ASSERT(ladder || initialisation.scheme == "gpt2", "initialise", "unknown initialisation {}",
               initialisation.scheme);
  const torch::NoGradGuard no_gradients;
  for (const auto& entry : weights) {
    const auto role = entry.traits.role;
    if (role == WeightRole::gain || role == WeightRole::head_gain)
      entry.weight.tensor().fill_(1.0);
    else
      (ladder ? draw_ladder : draw_gpt2)(entry, initialisation, seed);
  }
}

}  // namespace prism
