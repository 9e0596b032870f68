#include "prism/attention/rotary.h"

#include <ATen/Functions.h>

#include "prism/core/error.h"

namespace prism {

torch::Tensor rotary_angles(const RotaryConfig& config, int64_t head_dim) {
  PRISM_CHECK(head_dim > 0 && head_dim % 2 == 0, "rotary",
              "expected heads of even width; found {}; choose another head count.", head_dim);
  PRISM_CHECK(config.base > 0 && config.factor > 0, "rotary",
              "expected a positive base and factor; found {} and {}; raise them.", config.base, config.factor);
  PRISM_CHECK(config.scaling == "none" || config.scaling == "linear", "rotary",
              "expected scaling none or linear; found \"{}\"; choose one of them.", config.scaling);
  const double factor = config.scaling == "linear" ? config.factor : 1.0;
  const auto exponent = at::arange(0, head_dim, 2, torch::kDouble) / static_cast<double>(head_dim);
  return at::pow(config.base, -exponent) / factor;
}

RotaryTable RotaryCache::rows(const RotaryConfig& config, int64_t head_dim, int64_t first, int64_t count,
                              const torch::Device& device) {
  const auto& whole = table(config, head_dim, first + count, device);
  return {whole.cos.narrow(0, first, count), whole.sin.narrow(0, first, count)};
}

RotaryTable RotaryCache::rows(const RotaryConfig& config, int64_t head_dim, const torch::Tensor& positions_BT) {
  const auto& whole = table(config, head_dim, positions_BT.max().item<int64_t>() + 1, positions_BT.device());
  const auto pick = [&](const torch::Tensor& rows) {
    return rows.index_select(0, positions_BT.flatten())
        .view({positions_BT.size(0), positions_BT.size(1), head_dim / 2});
  };
  return {pick(whole.cos), pick(whole.sin)};
}

const RotaryTable& RotaryCache::table(const RotaryConfig& config, int64_t head_dim, int64_t positions,
                                      const torch::Device& device) {
  torch::NoGradGuard no_gradients;
  auto& entry = tables_[{head_dim, config.base, config.scaling, config.factor}];
  if (!entry.cos.defined() || entry.cos.size(0) < positions || entry.cos.device() != device) {
    // Twice as many as asked for, so that generation grows a table a logarithmic number of times.
    const auto position = at::arange(std::max<int64_t>(2 * positions, 64), torch::kDouble);
    const auto angle = at::outer(position, rotary_angles(config, head_dim));
    entry = {angle.cos().to(device, torch::kFloat), angle.sin().to(device, torch::kFloat)};
  }
  return entry;
}

}  // namespace prism
