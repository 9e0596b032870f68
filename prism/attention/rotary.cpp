#include "prism/attention/rotary.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/kernels/rotary_pairs.h"

namespace prism {
namespace {

enum class Scaling { none, linear, yarn, llama3 };
const std::map<std::string, Scaling> kScalings = {
    {"none", Scaling::none}, {"linear", Scaling::linear}, {"yarn", Scaling::yarn}, {"llama3", Scaling::llama3}};

void check_original_context(const RotaryConfig& config) {
  PRISM_CHECK(config.original_context > 0, "rotary",
              "rotary.original_context: expected at least 1 for {}; found {}; set it to the context that the model was "
              "trained with.",
              config.scaling, config.original_context);
}

/// YaRN's ramp, [D/2]: 0 for pairs that keep their angle, 1 for pairs whose angle is divided by the factor.
torch::Tensor yarn_ramp(const RotaryConfig& config, int64_t head_dim) {
  PRISM_CHECK(config.base > 1, "rotary", "rotary.base: expected a number above 1 for yarn; found {}; raise it.",
              config.base);
  check_original_context(config);
  PRISM_CHECK(
      config.beta_slow > 0 && config.beta_slow < config.beta_fast, "rotary",
      "rotary.beta_slow: expected a number between 0 and rotary.beta_fast, {}, for yarn; found {}; change one of "
      "them.",
      config.beta_fast, config.beta_slow);
  PRISM_CHECK(config.attention_factor >= 0, "rotary",
              "rotary.attention_factor: expected at least 0 for yarn; found {}; raise it.", config.attention_factor);
  const auto width = static_cast<double>(head_dim);
  const auto pair_with_turns = [&](double turns) {
    const double wavelength = static_cast<double>(config.original_context) / turns;
    return width * std::log(wavelength / (2 * std::numbers::pi)) / (2 * std::log(config.base));
  };
  const double low = std::max(std::floor(pair_with_turns(config.beta_fast)), 0.0);
  const double high = std::min(std::ceil(pair_with_turns(config.beta_slow)), width - 1);
  // The ramp would fall, for which transformers and llama.cpp have different angles.
  PRISM_CHECK(low <= high, "rotary",
              "rotary.original_context: expected one in which yarn's ramp ends at pair {} or later, where it begins; "
              "found {}, for which it ends at pair {}; change it, rotary.base or rotary.beta_slow.",
              low, config.original_context, high);
  const auto pair = at::arange(head_dim / 2, torch::kDouble);
  return ((pair - low) / std::max(high - low, 0.001)).clamp(0, 1);
}

/// The share of each angle that llama3 leaves unchanged, [D/2]: 1 for pairs that turn often in the original context.
torch::Tensor unchanged_share(const RotaryConfig& config, const torch::Tensor& angles) {
  check_original_context(config);
  PRISM_CHECK(config.low_freq_factor > 0 && config.low_freq_factor < config.high_freq_factor, "rotary",
              "rotary.low_freq_factor: expected a number between 0 and rotary.high_freq_factor, {}, for llama3; found "
              "{}; change one of them.",
              config.high_freq_factor, config.low_freq_factor);
  const auto turns = angles * (static_cast<double>(config.original_context) / (2 * std::numbers::pi));
  return ((turns - config.low_freq_factor) / (config.high_freq_factor - config.low_freq_factor)).clamp(0, 1);
}

/// Angles without the further divisors.
torch::Tensor scaled_angles(const RotaryConfig& config, int64_t width) {
  const auto scaling = find_by_name(kScalings, config.scaling, "rotary", "scaling");
  const auto exponent = at::arange(0, width, 2, torch::kDouble) / static_cast<double>(width);
  auto plain = at::pow(config.base, -exponent);
  switch (scaling) {
    case Scaling::none:
      return plain;
    case Scaling::linear:
      return plain / config.factor;
    case Scaling::yarn: {
      const auto ramp = yarn_ramp(config, width);
      return plain * (1 - ramp) + plain / config.factor * ramp;
    }
    case Scaling::llama3: {
      const auto share = unchanged_share(config, plain);
      return plain * share + plain / config.factor * (1 - share);
    }
  }
  throw InternalError("rotary", "unknown scaling.");
}

constexpr double kSmallest = 1e-3, kLargest = 1e12;  // published models: 0.125 (a factor) to 1e8 (a base)

/// The angles of `width` features that turn with the position, [width / 2].
torch::Tensor position_angles(const RotaryConfig& config, int64_t width) {
  auto angles = scaled_angles(config, width);
  if (config.factors.empty()) return angles;
  PRISM_CHECK(std::ssize(config.factors) == width / 2, "rotary",
              "rotary.factors: expected one for each of {} pairs; found {}; correct the list.", width / 2,
              config.factors.size());
  for (const double value : config.factors)
    PRISM_CHECK(value >= kSmallest && value <= kLargest, "rotary",
                "rotary.factors: expected numbers from {} to {}; found {}; correct the list.", kSmallest, kLargest,
                value);
  return angles / torch::tensor(config.factors, torch::kDouble);
}

}  // namespace

torch::Tensor rotary_angles(const RotaryConfig& config, int64_t head_dim) {
  PRISM_CHECK(head_dim > 0 && head_dim % 2 == 0, "rotary",
              "expected an even head width; found {}; change head_dim or the number of heads.", head_dim);
  PRISM_CHECK(config.word_dims >= 0 && config.word_dims % 2 == 0 && config.word_dims < head_dim, "rotary",
              "rotary.word_dims: expected an even number from 0 to {}, below the head width; found {}; change it.",
              head_dim - 2, config.word_dims);
  for (const auto& [name, value] :
       {std::pair{"base", config.base}, {"factor", config.factor}, {"word_base", config.word_base}})
    PRISM_CHECK(value >= kSmallest && value <= kLargest, "rotary",
                "rotary.{}: expected a number from {} to {}; found {}; change it.", name, kSmallest, kLargest, value);
  return at::cat(
      {position_angles(config, head_dim - config.word_dims), at::zeros({config.word_dims / 2}, torch::kDouble)});
}

double rotary_attention_factor(const RotaryConfig& config) {
  if (config.scaling != "yarn") return 1;
  if (config.attention_factor != 0) return config.attention_factor;
  return config.factor <= 1 ? 1 : 0.1 * std::log(config.factor) + 1;
}

RotaryPairs rotary_pairs(const RotaryConfig& config, int64_t head_dim) {
  if (!config.turns()) return {.head_dim = head_dim, .features = {}, .angles = {}};
  const auto angles = rotary_angles(config, head_dim);
  return half_split_pairs(head_dim, {angles.const_data_ptr<double>(), static_cast<size_t>(angles.numel())});
}

RotaryTable RotaryCache::rows(const RotaryConfig& config, int64_t head_dim, const TokenPositions& places,
                              int64_t tokens, const torch::Device& device) {
  auto& [last, rows] = last_[{head_dim, config}];
  const bool is_same = rows.cos.defined() && last.positions_BT.is_same(places.positions_BT) &&
                       last.word_positions_BT.is_same(places.word_positions_BT) && last.first == places.first &&
                       rows.cos.size(-2) == tokens && rows.cos.device() == device;
  if (!is_same) {
    rows = find_rows(config, head_dim, places, tokens, device);
    last = places;
  }
  return rows;
}

RotaryTable RotaryCache::find_rows(const RotaryConfig& config, int64_t head_dim, const TokenPositions& places,
                                   int64_t tokens, const torch::Device& device) {
  const int64_t width = head_dim - config.word_dims;
  RotaryTable rows;
  if (places.positions_BT.defined()) {
    rows = picked(config, width, places.positions_BT);
  } else {
    const auto& whole = table(config, width, places.first + tokens, device);
    rows = {whole.cos.narrow(0, places.first, tokens), whole.sin.narrow(0, places.first, tokens)};
  }
  if (config.word_dims == 0) return rows;
  PRISM_ASSERT(places.word_positions_BT.defined(), "rotary", "no positions in words");
  const auto words = picked({.base = config.word_base}, config.word_dims, places.word_positions_BT);
  const auto joined = [&](const torch::Tensor& one, const torch::Tensor& other_BTJ) {
    return at::cat({one.expand({other_BTJ.size(0), -1, -1}), other_BTJ}, 2);
  };
  return {joined(rows.cos, words.cos), joined(rows.sin, words.sin)};
}

RotaryTable RotaryCache::picked(const RotaryConfig& config, int64_t width, const torch::Tensor& positions_BT) {
  const auto& whole = table(config, width, positions_BT.max().item<int64_t>() + 1, positions_BT.device());
  const auto pick = [&](const torch::Tensor& rows) {
    return rows.index_select(0, positions_BT.flatten()).view({positions_BT.size(0), positions_BT.size(1), width / 2});
  };
  return {pick(whole.cos), pick(whole.sin)};
}

const RotaryTable& RotaryCache::table(const RotaryConfig& config, int64_t width, int64_t positions,
                                      const torch::Device& device) {
  torch::NoGradGuard no_gradients;
  auto& entry = tables_[{width, config}];
  if (!entry.cos.defined() || entry.cos.size(0) < positions || entry.cos.device() != device) {
    // Twice as many as requested, so that generation grows a table a logarithmic number of times.
    const auto position = at::arange(std::max<int64_t>(2 * positions, 64), torch::kDouble);
    const auto angle = at::outer(position, position_angles(config, width));
    const double factor = rotary_attention_factor(config);
    entry = {(factor * angle.cos()).to(device, torch::kFloat), (factor * angle.sin()).to(device, torch::kFloat)};
  }
  return entry;
}

}  // namespace prism
