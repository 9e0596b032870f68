#include "prism/analysis/feed_forward/twins.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
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

/// Gives all layers the projections of their own owners when it goes out of scope.
class OwnTwins {
 public:
  explicit OwnTwins(const Trunk& model) : model_(model) {}
  ~OwnTwins() {
    const auto& layers = model_.config().layers;
    for (size_t i = 0; i < layers.size(); ++i)
      if (layers[i].mirror_of >= 0) model_.share_pair(static_cast<size_t>(layers[i].mirror_of), i);
  }
  OwnTwins(const OwnTwins&) = delete;
  OwnTwins& operator=(const OwnTwins&) = delete;

 private:
  const Trunk& model_;
};

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

void TwinProbe::observe_feed_forward(size_t layer, const torch::Tensor&, const torch::Tensor& output_ND) {
  const auto own = static_cast<int64_t>(layer);
  const int64_t owner = owner_of_.at(layer);
  if (owner < 0) {
    outputs_[own] = output_ND.clone();
  } else {
    alignments_[own].add(outputs_.at(owner), output_ND);
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
  const auto& layers = model.config().layers;
  std::vector<size_t> owners;
  for (const auto& layer : layers)
    if (layer.mirror_of >= 0 &&
        std::find(owners.begin(), owners.end(), static_cast<size_t>(layer.mirror_of)) == owners.end())
      owners.push_back(static_cast<size_t>(layer.mirror_of));
  if (owners.size() < 2) return std::nullopt;
  const auto& first = layers[owners[0]].ffn;
  for (const size_t owner : owners)
    if (layers[owner].ffn.width != first.width || layers[owner].ffn.kind != first.kind) return std::nullopt;

  const OwnTwins afterwards(model);
  PermutedTwins result{loss(), {}};
  std::set<std::vector<size_t>> seen;
  constexpr int64_t kDrawsForOne = 20;  // with few owners there are few cycles, which are drawn again and again
  for (int64_t n = 0; n < kDrawsForOne * permutations && std::ssize(seen) < permutations; ++n) {
    const auto next = cycle_of(owners.size(), seed, static_cast<uint64_t>(n));
    if (!seen.insert(next).second) continue;
    for (size_t i = 0; i < owners.size(); ++i)
      for (size_t user = 0; user < layers.size(); ++user)
        if (layers[user].mirror_of == static_cast<int64_t>(owners[i])) model.share_pair(owners[next[i]], user);
    result.permuted_losses.push_back(loss());
  }
  return result;
}

}  // namespace prism
