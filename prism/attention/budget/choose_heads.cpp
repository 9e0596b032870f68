#include "prism/attention/budget/choose_heads.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "prism/core/error.h"

namespace prism {
namespace {

using torch::Tensor;

constexpr double kRounding = 1e-7;  ///< of a float32 share

/// The places of the values, the largest first, the lower place where they are equal. NaN counts as the largest.
std::vector<int64_t> descending(std::span<const double> values) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t left, int64_t right) {
    const double a = values[static_cast<size_t>(left)], b = values[static_cast<size_t>(right)];
    return a > b || (std::isnan(a) && !std::isnan(b));
  });
  return order;
}

/// Sets which heads are kept. Returns true if all are.
bool keep_largest(double share, std::span<const double> values, bool* kept) {
  const auto heads = static_cast<double>(values.size());
  const auto count = static_cast<int64_t>(std::min(heads, std::max(1.0, (share + kRounding) * heads)));  // NaN: 1
  const auto order = descending(values);
  for (int64_t rank = 0; rank < std::ssize(order); ++rank) kept[order[static_cast<size_t>(rank)]] = rank < count;
  return count == std::ssize(order);
}

/// softmax(x / tau), in place.
void soften(std::span<double> x, double tau) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (auto& value : x) sum += value = std::exp((value - largest) / tau);
  for (auto& value : x) value /= sum;
}

/// Value i becomes the one in the place of the i-th smallest random number.
void shuffle(std::span<double> values, std::span<const double> drawn) {
  const auto order = descending(drawn);
  const std::vector<double> before(values.begin(), values.end());
  for (size_t i = 0; i < values.size(); ++i) values[i] = before[static_cast<size_t>(order[values.size() - 1 - i])];
}

Tensor on_cpu(const Tensor& x) {
  return x.defined() ? x.to(torch::kCPU).contiguous() : x;
}

/// @tparam T  of the scores.
template <class T>
ChosenHeads choose(const BudgetScores& scores, double tau, const BudgetChange& change, const torch::Device& device) {
  using Heads = BudgetChange::Heads;
  const Tensor share_B1 = on_cpu(scores.share_B1), heads_BH = on_cpu(scores.heads_BH),
               drawn_BH = on_cpu(scores.drawn_BH);
  const int64_t batch = scores.batch, heads = scores.heads;
  const torch::TensorOptions options(c10::CppTypeToScalarType<T>::value);
  Tensor s_B = at::empty({batch}, options), p_BH = at::empty({batch, heads}, options),
         weight_BH = at::empty({batch, heads}, options), kept_BH = at::empty({batch, heads}, torch::kBool);
  const bool are_drawn = !heads_BH.defined() || change.heads == Heads::drawn;
  bool keeps_all = true;
  std::vector<double> p(static_cast<size_t>(heads));
  for (int64_t b = 0; b < batch; ++b) {
    T& s = s_B.mutable_data_ptr<T>()[b];
    s = static_cast<T>(share_B1.defined() ? 1 / (1 + std::exp(-double{share_B1.const_data_ptr<T>()[b]}))
                                          : scores.share);
    std::span<const double> drawn;
    if (drawn_BH.defined()) drawn = {drawn_BH.const_data_ptr<double>() + b * heads, p.size()};
    if (are_drawn) {
      std::fill(p.begin(), p.end(), 1 / static_cast<double>(heads));
    } else {
      std::copy_n(heads_BH.const_data_ptr<T>() + b * heads, heads, p.begin());
      soften(p, tau);
    }
    if (change.heads == Heads::shuffled) shuffle(p, drawn);
    T* rounded = p_BH.mutable_data_ptr<T>() + b * heads;
    std::transform(p.begin(), p.end(), rounded, [](double value) { return static_cast<T>(value); });
    std::copy_n(rounded, heads, p.begin());  // probabilities that are equal when rounded rank as equal
    const double gain = (std::isnan(change.gain) ? double{s} : change.gain) * static_cast<double>(heads);
    std::transform(p.begin(), p.end(), weight_BH.mutable_data_ptr<T>() + b * heads,
                   [&](double value) { return static_cast<T>(gain * value); });
    const double share = change.heads == Heads::all ? 1 : change.heads == Heads::drawn ? change.drawn_share : s;
    keeps_all &= keep_largest(share, are_drawn ? drawn : p, kept_BH.mutable_data_ptr<bool>() + b * heads);
  }
  return {{s_B.to(device), p_BH.to(device), kept_BH.to(device)}, weight_BH.to(device), keeps_all};
}

}  // namespace

ChosenHeads choose_heads(const BudgetScores& scores, double tau, const BudgetChange& change,
                         const torch::Device& device) {
  PRISM_ASSERT(scores.drawn_BH.defined() || (scores.heads_BH.defined() && !change.is_random()), "budget",
               "drawn heads without random numbers");
  const bool is_double = scores.heads_BH.defined() && scores.heads_BH.scalar_type() == torch::kDouble;
  return is_double ? choose<double>(scores, tau, change, device) : choose<float>(scores, tau, change, device);
}

torch::Tensor largest_heads(const torch::Tensor& s_B, const torch::Tensor& value_BH) {
  const int64_t heads = value_BH.size(1);
  const auto count_B = ((s_B.to(torch::kDouble) + kRounding) * heads).floor().to(torch::kLong).clamp(1, heads);
  const auto order_BH = std::get<1>(at::sort(value_BH, /*stable=*/true, /*dim=*/1, /*descending=*/true));
  const auto rank_H = at::arange(heads, count_B.options());
  return at::zeros_like(order_BH, torch::kBool)
      .scatter(1, order_BH, (rank_H < count_B.unsqueeze(1)).expand({value_BH.size(0), heads}));
}

}  // namespace prism
