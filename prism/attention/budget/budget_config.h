// Configuration of head budgets: per input, how many heads of a layer count, and which.
#pragma once

#include <cstddef>
#include <string>

namespace prism {

/// The budget of one layer's heads.
struct BudgetConfig {
  std::string kind = "none";
  double share = 1;
  bool train_topk = false;
  std::string summary = "tokens";
  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind,
      "head budget. none: all heads; learned: the text (in language models: the prompt) decides how many heads are "
      "used and which; fixed: the number is given by share, and the text decides which; random: the number is given "
      "by share, and the heads are drawn at random");
    v("share", share, "fixed and random: share of the heads, above 0 and at most 1");
    v("train_topk", train_topk, "keep only the chosen heads in training too (algorithm 1 of arXiv 2604.22583)");
    v("summary", summary,
      "what the budget reads. tokens: the mean over the tokens of the text or prompt; padded, in classifiers: the mean "
      "over padded positions too, as in equation 6 of arXiv 2604.22583, so that results depend on the batch");
  }
  bool is_on() const { return kind != "none"; }
};

/// @throws InputError naming the layer for an unknown kind or summary, a share out of range, or one that the kind does
/// not use.
void check(const BudgetConfig& config, size_t layer);

/// Temperatures of the choice of heads for which scores divided by them stay finite in float32.
inline constexpr double kLeastTau = 1e-6, kMostTau = 1e6;

/// How budgets are trained; the values of arXiv 2604.22583, section V-A. The symbols are those of equations 8 to 25.
struct BudgetSchedule {
  double s_min = 0.1, s_max = 0.9;
  double alpha_base = 0.001, alpha_max = 0.05, beta_max = 0.05;
  double sigma_max = 0.5, tau_max = 2, tau_min = 0.1, gamma = 5;
  std::string entropy_sign = "text";
  template <class Visitor>
  void visit(Visitor& v) {
    v("s_min", s_min, "shares of heads below this are penalised");
    v("s_max", s_max, "shares of heads above this are penalised");
    v("alpha_base", alpha_base, "weight of the penalty for a share just outside these bounds");
    v("alpha_max", alpha_max, "largest weight of the penalty; the weight grows with the distance from the bounds");
    v("beta_max", beta_max,
      "largest weight, in the loss, of the entropy of the choice of heads; entropy_sign says when it is rewarded");
    v("sigma_max", sigma_max, "standard deviation of the noise on the scores of heads at the first step; falls to 0");
    v("tau_max", tau_max, "temperature of the choice of heads at the first step");
    v("tau_min", tau_min, "temperature that it falls towards");
    v("gamma", gamma,
      "how fast the temperature falls: it is tau_min + (tau_max - tau_min) exp(-gamma t / T) after t of T steps");
    v("entropy_sign", entropy_sign,
      "when high entropy is rewarded. text: early in training, and low entropy late, as the text of arXiv 2604.22583 "
      "says; printed: the reverse, as equation 25 of that paper is printed");
  }

  /// tau_min + (tau_max - tau_min) exp(-gamma t / T), equation 10. @param progress  t / T, 0..1.
  double tau(double progress) const;
  /// sigma_max (1 - t / T), the standard deviation of the noise in equation 8.
  double sigma(double progress) const;
  /// beta_max (2 t / T - 1), equation 24.
  double beta(double progress) const;
};

/// @throws InputError for bounds out of order and values out of range.
void check(const BudgetSchedule& schedule);

}  // namespace prism
