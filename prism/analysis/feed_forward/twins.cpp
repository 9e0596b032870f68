#include "prism/analysis/feed_forward/twins.h"

#include <ATen/Functions.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "prism/core/random.h"

namespace prism {
namespace {

/// The permutation of `count` places that moves every place, the n-th for a seed: a cycle through all of them in random
/// order.
std::vector<size_t> cycle_of(size_t count, uint64_t seed, uint64_t n) {
  std::vector<size_t> order(count), next(count);
  std::iota(order.begin(), order.end(), size_t{0});
  Random random(seed, n);
  for (size_t i = count - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
  for (size_t i = 0; i < count; ++i) next[order[i]] = order[(i + 1) % count];
  return next;
}

}  // namespace

void KernelAlignment::add(const torch::Tensor& x_given, const torch::Tensor& y_given) {
  const auto x_ND = x_given.to(torch::kCPU, torch::kDouble), y_ND = y_given.to(torch::kCPU, torch::kDouble);
  const auto add_to = [](torch::Tensor& sum, const torch::Tensor& term) {
    sum = sum.defined() ? sum.add_(term) : term;
  };
  count_ += x_ND.size(0);
  add_to(sum_x_, x_ND.sum(0));
  add_to(sum_y_, y_ND.sum(0));
  add_to(xx_, at::matmul(x_ND.t(), x_ND));
  add_to(yy_, at::matmul(y_ND.t(), y_ND));
  add_to(yx_, at::matmul(y_ND.t(), x_ND));
}

double KernelAlignment::value() const {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  const auto norm = [&](const torch::Tensor& products, const torch::Tensor& a, const torch::Tensor& b) {
    return (products - at::outer(a, b) / static_cast<double>(count_)).norm().item<double>();
  };
  const double between = norm(yx_, sum_y_, sum_x_);
  return between * between / (norm(xx_, sum_x_, sum_x_) * norm(yy_, sum_y_, sum_y_));
}

TwinProbe::TwinProbe(const std::vector<LayerConfig>& layers) {
  for (const auto& layer : layers) owner_of_.push_back(layer.mirror_of);
}

void TwinProbe::observe_feed_forward(size_t layer, const torch::Tensor&, const torch::Tensor& output_BTD) {
  const auto own = static_cast<int64_t>(layer);
  const int64_t owner = owner_of_.at(layer);
  if (owner < 0) {
    outputs_[own] = output_BTD.flatten(0, 1).clone();
  } else {
    alignments_[own].add(outputs_.at(owner), output_BTD.flatten(0, 1));
  }
}

std::vector<TwinSimilarity> TwinProbe::result() const {
  std::vector<TwinSimilarity> found;
  for (const auto& [layer, alignment] : alignments_)
    found.push_back({layer, owner_of_.at(static_cast<size_t>(layer)), alignment.value()});
  return found;
}

std::optional<PermutedTwins> permute_twins(const Trunk& model, int64_t permutations, uint64_t seed,
                                           const std::function<double()>& loss) {
  std::vector<size_t> users, owners;
  const auto& layers = model.config().layers;
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i].mirror_of >= 0) users.push_back(i), owners.push_back(static_cast<size_t>(layers[i].mirror_of));
  if (users.size() < 2) return std::nullopt;
  for (const size_t user : users)
    if (layers[user].ffn.width != layers[users[0]].ffn.width || layers[user].ffn.kind != layers[users[0]].ffn.kind)
      return std::nullopt;
  PermutedTwins result{loss(), {}};
  for (int64_t n = 0; n < permutations; ++n) {
    const auto next = cycle_of(users.size(), seed, static_cast<uint64_t>(n));
    for (size_t i = 0; i < users.size(); ++i) model.share_pair(owners[next[i]], users[i]);
    result.permuted_losses.push_back(loss());
  }
  for (size_t i = 0; i < users.size(); ++i) model.share_pair(owners[i], users[i]);
  return result;
}

}  // namespace prism
