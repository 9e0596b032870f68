#include "prism/layers/initialise.h"

#include <ATen/CPUGeneratorImpl.h>

#include "prism/core/random.h"

namespace prism {

namespace {

at::Generator generator_of(uint64_t seed, std::string_view name) {
  uint64_t key = mix64(seed + 1);
  for (const char c : name) key = mix64(key ^ static_cast<uint8_t>(c)) + 0x9E3779B97F4A7C15u;
  return at::make_generator<at::CPUGeneratorImpl>(key);
}

}  // namespace

void initialise_normal(torch::Tensor weight, double std, uint64_t seed, std::string_view name) {
  torch::NoGradGuard no_gradients;
  weight.normal_(0.0, std, generator_of(seed, name));
}

void initialise_uniform(torch::Tensor weight, double bound, uint64_t seed, std::string_view name) {
  torch::NoGradGuard no_gradients;
  weight.uniform_(-bound, bound, generator_of(seed, name));
}

}  // namespace prism
