#include "prism/bench/synthetic_heads.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/random.h"

namespace prism {
namespace {

using torch::Tensor;

constexpr int64_t kSinkKeys = 4, kNeedleKeys = 32, kAskingQueries = 256, kTopics = 8, kTopicTokens = 128;
constexpr int64_t kMostWidth = 1024, kMostNeedles = 1 << 16;
constexpr double kMostStrength = 1e4;
/// A pattern's strength is split between query and key, so that neither has a large product with the other's noise. The
/// key's part is the same for all heads, because heads of one group share keys.
constexpr double kKeyShare = 4;
/// Most radians that a slow pair may turn over a prompt.
constexpr double kMostTurn = 0.5;

/// Radians per token. [D/2] float64
Tensor angles_of(const SyntheticMix& mix) {
  const int64_t half = mix.head_dim / 2;
  return at::pow(mix.base, -at::arange(half, torch::kDouble) / static_cast<double>(half));
}

/// Number of pairs that turn by at most kMostTurn over the whole prompt.
int64_t slow_pairs(const Tensor& angle_J, int64_t tokens) {
  return (angle_J * static_cast<double>(tokens) <= kMostTurn).sum().item<int64_t>();
}

/// Makes the directions, angles and noise of one mix.
class Maker {
 public:
  Maker(const SyntheticMix& mix, int64_t tokens)
      : mix_(mix),
        tokens_(tokens),
        half_(mix.head_dim / 2),
        generator_(at::detail::createCPUGenerator(static_cast<uint64_t>(mix.seed))),
        angle_J_(angles_of(mix)) {
    const auto turn_TJ = at::outer(at::arange(tokens, torch::kDouble), angle_J_);
    cos_TJ_ = turn_TJ.cos().to(torch::kFloat);
    sin_TJ_ = turn_TJ.sin().to(torch::kFloat);
  }

  /// A direction in the fast pairs, with the same length in each pair.
  Tensor fast_direction() {
    const int64_t count = half_ * 5 / 8;
    const auto phase = at::rand({count}, generator_, torch::kDouble) * (2 * std::numbers::pi);
    auto direction_2J = at::zeros({2, half_}, torch::kDouble);
    direction_2J[0].narrow(0, 0, count).copy_(phase.cos());
    direction_2J[1].narrow(0, 0, count).copy_(phase.sin());
    return scaled(direction_2J);
  }
  /// A random direction in the slow pairs.
  Tensor slow_direction() {
    const int64_t count = slow_pairs(angle_J_, tokens_);
    auto direction_2J = at::zeros({2, half_}, torch::kDouble);
    direction_2J.narrow(1, half_ - count, count).copy_(at::randn({2, count}, generator_, torch::kDouble));
    return scaled(direction_2J);
  }
  /// The direction of each token's topic. [T, 2, D/2] float32
  Tensor topics() {
    std::vector<Tensor> directions;
    for (int64_t i = 0; i < kTopics; ++i) directions.push_back(slow_direction().to(torch::kFloat));
    const int64_t stretches = (tokens_ + kTopicTokens - 1) / kTopicTokens;
    const auto topic = at::randint(kTopics, {stretches}, generator_, torch::kLong);
    return at::stack(directions).index_select(0, topic.repeat_interleave(kTopicTokens).narrow(0, 0, tokens_));
  }
  /// The direction turned back by `tokens` positions.
  Tensor turned_back(const Tensor& direction_2J, int64_t tokens) const {
    const auto cos = (angle_J_ * static_cast<double>(tokens)).cos(),
               sin = (angle_J_ * static_cast<double>(tokens)).sin();
    return at::stack({direction_2J[0] * cos + direction_2J[1] * sin, direction_2J[1] * cos - direction_2J[0] * sin});
  }
  Tensor noise() { return at::randn({tokens_, 2, half_}, generator_, torch::kFloat) * mix_.noise; }
  Tensor values() { return at::randn({tokens_, mix_.head_dim}, generator_, torch::kFloat); }
  /// Turns every row by its position. [T, 2, D/2] -> [T, D]
  Tensor rotated(const Tensor& rows_T2J) const {
    const auto a = rows_T2J.select(1, 0), b = rows_T2J.select(1, 1);
    return at::cat({a * cos_TJ_ - b * sin_TJ_, b * cos_TJ_ + a * sin_TJ_}, 1);
  }
  RotaryPairs pairs() const {
    return half_split_pairs(mix_.head_dim, {angle_J_.const_data_ptr<double>(), static_cast<size_t>(half_)});
  }

 private:
  /// Scales to length D^(1/4), so that q = k has the score q k / sqrt(D) = 1.
  Tensor scaled(const Tensor& direction_2J) const {
    return direction_2J * (std::pow(static_cast<double>(mix_.head_dim), 0.25) / direction_2J.norm().item<double>());
  }

  const SyntheticMix& mix_;
  int64_t tokens_, half_;
  at::Generator generator_;
  Tensor angle_J_, cos_TJ_, sin_TJ_;
};

/// Ensures that scores stay finite in float32 and bfloat16.
void check_strength(double strength) {
  PRISM_CHECK(std::abs(strength) <= kMostStrength, "synthetic heads",
              "expected strengths within -{0} and {0}; found {1}; change it.", kMostStrength, strength);
}

/// Position of a needle and of the first query that looks for it, both random.
struct Needle {
  int64_t key, first_query;
};

Needle draw_needle(Random& random, int64_t tokens) {
  const int64_t key = static_cast<int64_t>(random.below(static_cast<uint64_t>(std::max<int64_t>(1, tokens * 3 / 4))));
  const int64_t room = std::max<int64_t>(1, tokens - kAskingQueries - key - 1);
  return {key, key + 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(room)))};
}

}  // namespace

void check_synthetic_mix(const SyntheticMix& mix, int64_t tokens) {
  PRISM_CHECK(!mix.heads.empty() && mix.kv_heads > 0 && static_cast<int64_t>(mix.heads.size()) % mix.kv_heads == 0,
              "synthetic heads", "expected heads and kv_heads that divide them; found {} and {}; change one.",
              mix.heads.size(), mix.kv_heads);
  PRISM_CHECK(mix.head_dim >= 16 && mix.head_dim % 16 == 0 && mix.head_dim <= kMostWidth, "synthetic heads",
              "head_dim: expected a multiple of 16 up to {}; found {}; change it.", kMostWidth, mix.head_dim);
  PRISM_CHECK(mix.base > 1 && std::isfinite(mix.base) && mix.noise >= 0 && std::isfinite(mix.noise), "synthetic heads",
              "expected a base above 1 and noise of at least 0; found {} and {}; change them.", mix.base, mix.noise);
  for (const auto& head : mix.heads) {
    PRISM_CHECK(head.needles >= 0 && head.needles <= kMostNeedles, "synthetic heads",
                "needles: expected 0 to {}; found {}; change it.", kMostNeedles, head.needles);
    for (const double strength : {head.sink, head.needle, head.topic}) check_strength(strength);
    for (const auto& slash : head.slashes) {
      check_strength(slash.strength);
      PRISM_CHECK(slash.distance >= 0, "synthetic heads",
                  "distance: expected at least 0 tokens back; found {}; change it.", slash.distance);
    }
  }
  PRISM_CHECK(tokens > 0, "synthetic heads", "expected at least 1 token; found {}; ask for more.", tokens);
  const bool needs_slow = std::any_of(mix.heads.begin(), mix.heads.end(), [](const SyntheticHead& head) {
    return head.sink != 0 || head.needle != 0 || head.topic != 0;
  });
  const int64_t slow = slow_pairs(angles_of(mix), tokens);
  PRISM_CHECK(
      !needs_slow || slow >= 2, "synthetic heads",
      "expected at least two pairs that turn by at most {} radians over {} tokens; found {}; raise the base or take "
      "fewer tokens.",
      kMostTurn, tokens, slow);
}

SyntheticHeads make_synthetic_heads(const SyntheticMix& mix, int64_t tokens, torch::ScalarType type) {
  const torch::NoGradGuard no_gradients;
  check_synthetic_mix(mix, tokens);
  Maker maker(mix, tokens);
  const auto heads = static_cast<int64_t>(mix.heads.size()), group = heads / mix.kv_heads;
  SyntheticHeads made{at::empty({1, tokens, heads, mix.head_dim}, type),
                      at::empty({1, mix.kv_heads, tokens, mix.head_dim}, type),
                      at::empty({1, mix.kv_heads, tokens, mix.head_dim}, type), maker.pairs()};
  for (int64_t g = 0; g < mix.kv_heads; ++g) {
    const auto first_head = mix.heads.begin() + g * group, end_head = first_head + group;
    const auto any = [&](double SyntheticHead::*strength) {
      return std::any_of(first_head, end_head, [&](const SyntheticHead& head) { return head.*strength != 0; });
    };
    const auto fast = maker.fast_direction();
    auto keys = maker.noise();
    keys += (fast * kKeyShare).to(torch::kFloat);
    Tensor sink, topics_T2J;
    if (any(&SyntheticHead::sink)) {
      sink = maker.slow_direction();
      keys.narrow(0, 0, std::min(kSinkKeys, tokens)) += (sink * kKeyShare).to(torch::kFloat);
    }
    if (any(&SyntheticHead::topic)) {
      topics_T2J = maker.topics();
      keys += topics_T2J * kKeyShare;
    }
    for (int64_t h = g * group; h < (g + 1) * group; ++h) {
      const auto& pattern = mix.heads[static_cast<size_t>(h)];
      auto queries = maker.noise();
      if (pattern.sink != 0) queries += (sink * (pattern.sink / kKeyShare)).to(torch::kFloat);
      if (pattern.topic != 0) queries += topics_T2J * (pattern.topic / kKeyShare);
      for (const auto& slash : pattern.slashes)
        queries += (maker.turned_back(fast, slash.distance) * (slash.strength / kKeyShare)).to(torch::kFloat);
      Random random(static_cast<uint64_t>(mix.seed), static_cast<uint64_t>(h));
      for (int64_t n = 0; n < pattern.needles; ++n) {
        const auto [key, first] = draw_needle(random, tokens);
        const auto direction = maker.slow_direction();
        keys.narrow(0, key, std::min(kNeedleKeys, tokens - key)) += (direction * kKeyShare).to(torch::kFloat);
        queries.narrow(0, first, std::min(kAskingQueries, tokens - first)) +=
            (direction * (pattern.needle / kKeyShare)).to(torch::kFloat);
      }
      made.q_BTHD[0].select(1, h).copy_(maker.rotated(queries));
    }
    made.k_BGSD[0][g].copy_(maker.rotated(keys));
    made.v_BGSE[0][g].copy_(maker.values());
  }
  return made;
}

}  // namespace prism
