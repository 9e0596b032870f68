// The fused kernels of a block against their plain versions, and their gradients.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/kernels/cross_entropy.h"
#include "prism/kernels/glu.h"
#include "prism/kernels/linear.h"
#include "prism/kernels/norm.h"
#include "prism/kernels/peak.h"
#include "prism/kernels/rotate.h"
#include "tests/core/message_of.h"
#include "tests/kernels/gradient_check.h"

namespace prism {
namespace {

using torch::Tensor;

double max_difference(const Tensor& a, const Tensor& b) {
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
}

/// Turns any output into a scalar with fixed random weights.
Tensor weighted_sum(const Tensor& y) {
  torch::manual_seed(7);
  return (y * torch::randn(y.sizes(), torch::kDouble)).sum();
}

NormedSum add_rms_norm(const Tensor& x, const Tensor& branch, const Tensor& weight, double eps, torch::ScalarType out) {
  return add_norm(x, branch, {.weight = weight, .eps = eps}, out);
}

NormedSum add_rms_norm_plain(const Tensor& x, const Tensor& branch, const Tensor& weight, double eps,
                             torch::ScalarType out) {
  return add_norm_plain(x, branch, {.weight = weight, .eps = eps}, out);
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, torch::ScalarType out) {
  return add_rms_norm(x, {}, weight, 1e-5, out).normed;
}

Tensor rms_norm_plain(const Tensor& x, const Tensor& weight, torch::ScalarType out) {
  return add_rms_norm_plain(x, {}, weight, 1e-5, out).normed;
}

TEST(RmsNorm, EqualsItsPlainVersion) {
  torch::manual_seed(1);
  // 130 rows: more than two of the partial sums of the gain's gradient.
  const auto x = torch::randn({2, 65, 48}) * 3, weight = torch::randn({48});
  // One rounding to float32 in each of x r, r w and r itself: 4 eps of the largest value.
  const double largest = rms_norm_plain(x, weight, torch::kFloat).abs().max().item<double>();
  EXPECT_LE(max_difference(rms_norm(x, weight, torch::kFloat), rms_norm_plain(x, weight, torch::kFloat)),
            4 * 0x1p-23 * largest);
  EXPECT_LE(max_difference(rms_norm(x, weight, torch::kBFloat16), rms_norm_plain(x, weight, torch::kFloat)),
            0x1p-8 * largest);
}

TEST(RmsNorm, AddsABranchAndReturnsTheSum) {
  torch::manual_seed(13);
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto x = torch::randn({3, 21}), branch = torch::randn({3, 21}).to(type), weight = torch::randn({21});
    const auto [sum, normed] = add_rms_norm(x, branch, weight, 1e-5, type);
    EXPECT_TRUE(torch::equal(sum, x + branch));
    EXPECT_TRUE(torch::equal(normed, rms_norm(x + branch, weight, type)));
  }
  EXPECT_THROW(add_rms_norm(torch::ones({2, 4}), torch::ones({2, 3}), torch::ones({4}), 1e-5, torch::kFloat),
               InputError);
  EXPECT_THROW(add_rms_norm(torch::ones({2, 4}), torch::ones({2, 4}), torch::ones({4}), 1e-5, torch::kBFloat16),
               InputError);
}

TEST(RmsNorm, HasTheGradientsOfFiniteDifferences) {
  torch::manual_seed(2);
  const auto x = torch::randn({70, 6}, torch::kDouble), branch = torch::randn({70, 6}, torch::kDouble),
             weight = torch::randn({6}, torch::kDouble);
  const auto both = [](const Tensor& a, const Tensor& b, const Tensor& w) {
    const auto [sum, normed] = add_rms_norm(a, b, w, 1e-5, torch::kDouble);
    return weighted_sum(normed) + weighted_sum(sum * sum);
  };
  expect_gradient([&](const Tensor& moved) { return both(moved, branch, weight); }, x);
  expect_gradient([&](const Tensor& moved) { return both(x, moved, weight); }, branch);
  expect_gradient([&](const Tensor& moved) { return both(x, branch, moved); }, weight);
}

/// Gradients of a function at its leaves.
using Gradients = std::vector<Tensor>;
Gradients gradients_of(const std::function<Tensor(const std::vector<Tensor>&)>& f, std::vector<Tensor> leaves,
                       torch::ScalarType type) {
  for (auto& leaf : leaves) leaf = leaf.detach().to(type).clone().requires_grad_(true);
  f(leaves).backward();
  Gradients gradients;
  for (const auto& leaf : leaves) gradients.push_back(leaf.grad().to(torch::kDouble));
  return gradients;
}

TEST(RmsNorm, HasTheGradientsOfItsPlainVersionInDouble) {
  torch::manual_seed(14);
  const std::vector<Tensor> leaves = {torch::randn({130, 37}), torch::randn({130, 37}), torch::randn({37})};
  for (const bool use_sum : {true, false}) {
    for (const bool use_normed : {true, false}) {
      if (!use_sum && !use_normed) continue;
      const auto f = [&](const std::vector<Tensor>& at) {
        const auto [sum, normed] = add_rms_norm(at[0], at[1], at[2], 1e-5, at[0].scalar_type());
        auto total = torch::zeros({}, torch::kDouble);
        if (use_sum) total = total + weighted_sum(sum);
        if (use_normed) total = total + weighted_sum(normed);
        return use_normed ? total : total + at[2].sum();
      };
      const auto fast = gradients_of(f, leaves, torch::kFloat), truth = gradients_of(f, leaves, torch::kDouble);
      // Rounding of sums over 37 features, and over 130 rows for the gain, with terms of size 10.
      for (size_t i = 0; i < leaves.size(); ++i) EXPECT_LE(max_difference(fast[i], truth[i]), 130 * 0x1p-24 * 10) << i;
    }
  }
}

TEST(RmsNorm, RejectsAGainOfAnotherWidthAndHalfPrecisionInput) {
  EXPECT_THROW(rms_norm(torch::ones({2, 4}), torch::ones({5}), torch::kFloat), InputError);
  EXPECT_THROW(rms_norm(torch::ones({2, 4}, torch::kBFloat16), torch::ones({4}, torch::kBFloat16), torch::kBFloat16),
               InputError);
}

std::pair<Tensor, Tensor> tables(at::IntArrayRef shape) {
  const auto angle = torch::rand(shape) * 6;
  return {angle.cos(), angle.sin()};
}

TEST(RotateHeads, EqualsItsPlainVersionForSharedAndOwnPositions) {
  torch::manual_seed(3);
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto x = torch::randn({2, 5, 7 * 8}).to(type);
    for (const auto& [cos, sin] : {tables({5, 4}), tables({2, 5, 4})}) {
      const auto plain = rotate_heads_plain(x, cos, sin, 4);
      const auto fused = rotate_heads(x.clone(), cos, sin, 4);
      // Both compute in float32 and round once, but only one may fuse multiply and add.
      EXPECT_LE(max_difference(plain, fused),
                (type == torch::kBFloat16 ? 0x1p-7 : 0x1p-21) * x.abs().max().item<double>());
      EXPECT_TRUE(torch::equal(fused.narrow(2, 4 * 8, 3 * 8), x.narrow(2, 4 * 8, 3 * 8)));
    }
  }
}

TEST(RotateHeads, KeepsLengthsAndDependsOnlyOnDistance) {
  torch::manual_seed(4);
  const auto angle = torch::arange(16).unsqueeze(1) * torch::tensor({1.0, 0.3, 0.01});
  const auto q = torch::randn({1, 1, 6}).expand({1, 16, 6}), k = torch::randn({1, 1, 6}).expand({1, 16, 6});
  const auto turned_q = rotate_heads(q.clone(), angle.cos().contiguous(), angle.sin().contiguous(), 1).squeeze(0);
  const auto turned_k = rotate_heads(k.clone(), angle.cos().contiguous(), angle.sin().contiguous(), 1).squeeze(0);
  EXPECT_TRUE(torch::allclose(turned_q.norm(2, {1}), q.flatten(0, 1).norm(2, {1}), 1e-5));
  const auto scores = torch::matmul(turned_q, turned_k.t());
  EXPECT_NEAR(scores[9][4].item<float>(), scores[14][9].item<float>(), 1e-4);
  EXPECT_GT(std::abs(scores[9][4].item<float>() - scores[9][5].item<float>()), 1e-3);
}

TEST(RotateHeads, HasTheGradientOfFiniteDifferencesInPlaceAndNot) {
  torch::manual_seed(5);
  const auto [cos, sin] = tables({3, 2});
  const auto x = torch::randn({2, 3, 3 * 4}, torch::kDouble);
  expect_gradient([&, c = cos, s = sin](const Tensor& moved) { return weighted_sum(rotate_heads(moved, c, s, 2)); }, x);
  expect_gradient(
      [&, c = cos, s = sin](const Tensor& moved) { return weighted_sum(rotate_heads(moved * 1.5, c, s, 2)); }, x);
}

TEST(RotateHeads, RejectsTablesThatDoNotFit) {
  EXPECT_THROW(rotate_heads(torch::ones({1, 3, 2 * 4}), torch::ones({4, 2}), torch::ones({4, 2}), 2), InputError);
  EXPECT_THROW(rotate_heads(torch::ones({1, 3, 2 * 5}), torch::ones({3, 2}), torch::ones({3, 2}), 2), InputError);
}

TEST(Glu, HasTheGradientOfFiniteDifferences) {
  torch::manual_seed(6);
  for (const auto kind : {GluKind::swiglu, GluKind::g2lu}) {
    const int64_t parts = gate_parts(kind);
    const auto x = torch::randn({3, (parts + 1) * 5}, torch::kDouble);
    expect_gradient([&](const Tensor& moved) { return weighted_sum(glu(kind, moved)); }, x);
    const auto gates = torch::randn({3, parts * 5}, torch::kDouble), up = torch::randn({3, 5}, torch::kDouble);
    expect_gradient([&](const Tensor& moved) { return weighted_sum(glu(kind, moved, up)); }, gates);
    expect_gradient([&](const Tensor& moved) { return weighted_sum(glu(kind, gates, moved)); }, up);
  }
}

TEST(Glu, EqualsItsPlainVersionInEveryType) {
  torch::manual_seed(15);
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    for (const auto kind : {GluKind::swiglu, GluKind::g2lu}) {
      const int64_t parts = gate_parts(kind);
      const auto x = (torch::randn({7, (parts + 1) * 35}) * (parts == 1 ? 20 : 4)).to(type);
      const auto exact = x.to(torch::kDouble);
      const auto truth = glu_plain(kind, exact);
      // Relative error: one rounding to bfloat16, or some dozens to float32 plus 1.25 of them for each unit of the
      // arguments of the exponentials. Absolute error: where silu underflows.
      const auto pieces = exact.chunk(parts + 1, -1);
      const auto z = parts == 1 ? pieces[0].abs() : (pieces[0] * torch::silu(pieces[1])).abs() + pieces[1].abs() + 20;
      const auto share = type == torch::kBFloat16 ? torch::full_like(z, 0x1p-8) : (z * 2.5 + 12) * 0x1p-24;
      const auto allowed = truth.abs() * share + 1e-30;
      EXPECT_TRUE(((glu(kind, x).to(torch::kDouble) - truth).abs() <= allowed).all().item<bool>());
      const auto apart = glu(kind, x.narrow(-1, 0, parts * 35), x.narrow(-1, parts * 35, 35));
      EXPECT_TRUE(torch::equal(apart, glu(kind, x))) << "up beside the gates and apart give the same bits";
    }
  EXPECT_TRUE(glu(GluKind::swiglu, torch::tensor({{NAN, 1.0f}})).isnan().all().item<bool>());
}

TEST(Glu, HasTheGradientOfItsPlainVersionInDouble) {
  torch::manual_seed(16);
  for (const auto kind : {GluKind::swiglu, GluKind::g2lu}) {
    const auto f = [&](const std::vector<Tensor>& at) { return weighted_sum(glu(kind, at[0], at[1])); };
    const std::vector<Tensor> leaves = {torch::randn({9, gate_parts(kind) * 35}) * 5, torch::randn({9, 35}) * 5};
    const auto found = gradients_of(f, leaves, torch::kFloat), truth = gradients_of(f, leaves, torch::kDouble);
    // Some dozens of roundings of values up to 5 * 15 * 4, with a second gate up to 15 times as large.
    for (const size_t i : {0, 1})
      EXPECT_LE(max_difference(found[i], truth[i]), 12 * 0x1p-24 * (kind == GluKind::swiglu ? 300 : 15 * 300));
  }
}

TEST(Glu, RejectsShapesThatDoNotFit) {
  EXPECT_REFUSED(glu(GluKind::swiglu, torch::ones({2, 3})), "expected 2 projections of one width");
  EXPECT_REFUSED(glu(GluKind::g2lu, torch::ones({2, 4})), "expected 3 projections of one width");
  EXPECT_REFUSED(glu(GluKind::g2lu, torch::ones({2, 4}), torch::ones({2, 3})), "expected gates 2 x 6");
  EXPECT_REFUSED(glu(GluKind::swiglu, torch::ones({2, 4}), torch::ones({2, 4}, torch::kBFloat16)), "of one dtype");
}

TEST(RotateHeads, HasTheGradientOfItsPlainVersionInDoubleInPlaceAndNot) {
  torch::manual_seed(18);
  const auto [cos, sin] = tables({5, 19});
  for (const bool leaf : {true, false}) {
    const auto f = [&, c = cos, s = sin](const std::vector<Tensor>& at) {
      return weighted_sum(rotate_heads(leaf ? at[0] : at[0] * 1.5, c, s, 2));
    };
    const std::vector<Tensor> leaves = {torch::randn({2, 5, 3 * 38})};
    // Two products and their sum, of values up to 8.
    EXPECT_LE(max_difference(gradients_of(f, leaves, torch::kFloat)[0], gradients_of(f, leaves, torch::kDouble)[0]),
              4 * 0x1p-24 * 8);
  }
}

/// Outputs and gradients of every fused kernel, at sizes that are split across threads.
std::vector<Tensor> everything_fused(int threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(threads);
  torch::manual_seed(19);
  const auto leaf = [](at::IntArrayRef shape) { return torch::randn(shape).to(torch::kBFloat16).requires_grad_(true); };
  const auto x = torch::randn({300, 250}).requires_grad_(true), gain = torch::randn({250}).requires_grad_(true);
  const auto branch = leaf({300, 250}), gate_up = leaf({300, 500}), nested_gates = leaf({300, 500}),
             heads = leaf({3, 100, 6 * 50});
  const auto head = torch::randn({900, 250}).requires_grad_(true);
  const auto labels = torch::randint(0, 900, {300}, torch::kLong);
  const auto [cos, sin] = tables({100, 25});
  const auto [sum, normed] = add_rms_norm(x, branch, gain, 1e-5, torch::kBFloat16);
  const auto gated = glu(GluKind::swiglu, gate_up), nested = glu(GluKind::g2lu, nested_gates, branch);
  const auto turned = rotate_heads(heads, cos, sin, 4);
  const auto loss = head_cross_entropy(normed, head, head.detach().to(torch::kBFloat16), labels);
  (loss + weighted_sum(sum) + weighted_sum(gated) + weighted_sum(nested) + weighted_sum(turned)).backward();
  at::set_num_threads(before);
  return {sum,
          normed,
          gated,
          nested,
          turned,
          loss,
          x.grad(),
          gain.grad(),
          branch.grad(),
          gate_up.grad(),
          nested_gates.grad(),
          heads.grad(),
          head.grad()};
}

/// Without gradients kernels are called directly, not through autograd.
TEST(FusedKernels, GiveTheSameBitsWithAndWithoutGradients) {
  torch::manual_seed(20);
  const auto gates = torch::randn({3, 500}).to(torch::kBFloat16), up = torch::randn({3, 250}).to(torch::kBFloat16);
  const auto heads = torch::randn({1, 3, 6 * 50}).to(torch::kBFloat16);
  const auto [cos, sin] = tables({3, 25});
  const auto recorded = [](const Tensor& x) { return x.clone().requires_grad_(true); };
  EXPECT_TRUE(torch::equal(glu(GluKind::swiglu, gates), glu(GluKind::swiglu, recorded(gates))));
  EXPECT_TRUE(torch::equal(glu(GluKind::g2lu, gates, up), glu(GluKind::g2lu, recorded(gates), recorded(up))));
  const auto turned = rotate_heads(recorded(heads), cos, sin, 4);
  const auto given = heads.clone();
  EXPECT_TRUE(torch::equal(rotate_heads(given, cos, sin, 4), turned));
  EXPECT_TRUE(torch::equal(given, turned));  // in place
  const torch::NoGradGuard no_gradients;
  const auto leaf = recorded(heads);
  EXPECT_TRUE(torch::equal(rotate_heads(leaf, cos, sin, 4), turned));
  EXPECT_TRUE(torch::equal(leaf, heads));  // a leaf that requires gradients keeps its value
}

TEST(FusedKernels, GiveTheSameBitsForEveryNumberOfThreads) {
  const auto one = everything_fused(1), three = everything_fused(3);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(torch::equal(one[i], three[i])) << i;
}

TEST(LinearKernel, SendsTheGradientToTheMasterWeight) {
  torch::manual_seed(7);
  const auto x = torch::randn({2, 3, 4}, torch::kDouble), weight = torch::randn({5, 4}, torch::kDouble);
  expect_gradient([&](const Tensor& moved) { return weighted_sum(linear(moved, weight, weight)); }, x);
  expect_gradient([&](const Tensor& moved) { return weighted_sum(linear(x, moved, moved.detach())); }, weight);

  auto master = torch::randn({5, 4}).requires_grad_(true);
  linear(torch::randn({3, 4}).to(torch::kBFloat16), master, master.detach().to(torch::kBFloat16)).sum().backward();
  EXPECT_EQ(master.grad().scalar_type(), torch::kFloat);
}

TokenScores token_scores_of(const Tensor& hidden, const Tensor& weight, const Tensor& labels) {
  const auto product = [&](const Tensor& rows) { return at::linear(rows, weight); };
  return head_token_scores(hidden, weight.sizes().vec(), product, labels, /*with_top=*/true);
}

TEST(HeadCrossEntropy, EqualsThePlainLossAcrossChunksAndSkipsRowsWithoutLabel) {
  torch::manual_seed(8);
  // With 700,000 classes a chunk has 16 rows, so 40 rows are three chunks.
  const auto hidden = torch::randn({40, 3}), weight = torch::randn({700000, 3});
  auto labels = torch::randint(0, 700000, {40}, torch::kLong);
  labels[3] = -1;
  labels[39] = -1;
  const auto top = at::linear(hidden.narrow(0, 4, 2), weight).argmax(1);
  labels[5] = top[1];
  labels[4] = top[0].item<int64_t>() == 0 ? 1 : 0;
  const auto plain = head_cross_entropy_plain(hidden.to(torch::kDouble), weight.to(torch::kDouble), labels);
  EXPECT_NEAR(head_cross_entropy(hidden, weight, weight, labels).item<double>(), plain.item<double>(), 1e-5);
  const auto scores = token_scores_of(hidden, weight, labels);
  for (const int64_t row : {3, 4, 5, 39}) EXPECT_EQ(scores.is_top_N[row].item<bool>(), row == 5) << row;
  const auto& losses = scores.losses_N;
  EXPECT_EQ(losses[3].item<float>(), 0.0f);
  EXPECT_NEAR(losses.sum().item<double>() / 38, plain.item<double>(), 1e-5);
}

TEST(HeadCrossEntropy, HasTheGradientsOfFiniteDifferences) {
  torch::manual_seed(9);
  const auto hidden = torch::randn({5, 3}, torch::kDouble), weight = torch::randn({7, 3}, torch::kDouble);
  const auto labels = torch::tensor({0, 6, -1, 2, 2}, torch::kLong);
  for (const double z : {0.0, 0.3}) {
    expect_gradient([&](const Tensor& moved) { return head_cross_entropy(moved, weight, weight, labels, z) * 3; },
                    hidden);
    expect_gradient(
        [&](const Tensor& moved) { return head_cross_entropy(hidden, moved, moved.detach(), labels, z) * 3; }, weight);
    EXPECT_NEAR(head_cross_entropy(hidden, weight, weight, labels, z).item<double>(),
                head_cross_entropy_plain(hidden, weight, labels, z).item<double>(), 1e-12);
  }
}

TEST(HeadCrossEntropy, HasTheGradientsOfItsPlainVersionInDouble) {
  torch::manual_seed(17);
  const auto labels = torch::tensor({0, 66, -1, 2, 2}, torch::kLong);
  const std::vector<Tensor> leaves = {torch::randn({5, 3}), torch::randn({67, 3})};
  for (const double z : {0.0, 0.1}) {
    const auto f = [&](const std::vector<Tensor>& at) {
      return head_cross_entropy(at[0], at[1], at[1].detach(), labels, z);
    };
    const auto fast = gradients_of(f, leaves, torch::kFloat), truth = gradients_of(f, leaves, torch::kDouble);
    // Sums of 67 and of 5 terms of at most 3, with the error of the exponential and of its argument, sum |h| |w| 3
    // 2^-24. The z-loss scales the weights by 1 + 2 z lse, which is at most 3 here.
    for (size_t i = 0; i < 2; ++i)
      EXPECT_LE(max_difference(fast[i], truth[i]), (z > 0 ? 3 : 1) * 32 * 0x1p-24 * 3) << i << " " << z;
  }
}

TEST(HeadCrossEntropy, RejectsLabelsOutsideTheVocabulary) {
  const auto hidden = torch::ones({2, 3}), weight = torch::ones({7, 3});
  EXPECT_THROW(head_cross_entropy(hidden, weight, weight, torch::tensor({1, 7}, torch::kLong)), InputError);
  EXPECT_THROW(token_scores_of(hidden, weight, torch::tensor({7, 0}, torch::kLong)), InputError);
}

TEST(HeadCrossEntropy, ScalesBothGradientsAlikeInBfloat16) {
  torch::manual_seed(10);
  const auto values = torch::randn({6, 8}).to(torch::kBFloat16);
  const auto weight_values = torch::randn({9, 8});
  const auto labels = torch::tensor({0, 1, 2, 3, 4, 5}, torch::kLong);
  const auto gradients = [&](double scale) {
    auto hidden = values.clone().requires_grad_(true), weight = weight_values.clone().requires_grad_(true);
    (head_cross_entropy(hidden, weight, weight.detach().to(torch::kBFloat16), labels) * scale).backward();
    return std::pair{hidden.grad().to(torch::kDouble), weight.grad().to(torch::kDouble)};
  };
  // 1/3 has no exact bfloat16 value. Rounding it first would shrink every element by 0.2%; the errors of rounding
  // afterwards average out.
  const auto [whole, weight_whole] = gradients(1.0);
  const auto [third, weight_third] = gradients(1.0 / 3);
  EXPECT_NEAR((third.abs().sum() / whole.abs().sum()).item<double>() * 3, 1.0, 8e-4);
  EXPECT_NEAR((weight_third.abs().sum() / weight_whole.abs().sum()).item<double>() * 3, 1.0, 1e-6);
}

TEST(HeadCrossEntropy, IsZeroWithoutAnyLabel) {
  auto hidden = torch::randn({2, 3}).requires_grad_(true);
  const auto weight = torch::randn({7, 3});
  const auto loss = head_cross_entropy(hidden, weight, weight, torch::full({2}, -1, torch::kLong));
  loss.backward();
  EXPECT_EQ(loss.item<float>(), 0.0f);
  EXPECT_EQ(hidden.grad().abs().max().item<float>(), 0.0f);
}

TEST(FusedKernels, ExceedTheirTolerancesWhenOneElementIsWrong) {
  torch::manual_seed(11);
  const auto wrong = [](const Tensor& x) {
    auto copy = x.clone();
    copy.flatten()[x.numel() / 2] += 0.02;
    return copy;
  };
  const auto x = torch::randn({2, 65, 48}), weight = torch::randn({48});
  const double largest = rms_norm_plain(x, weight, torch::kFloat).abs().max().item<double>();
  EXPECT_GT(max_difference(rms_norm(x, weight, torch::kFloat), rms_norm_plain(wrong(x), weight, torch::kFloat)),
            4 * 0x1p-23 * largest);
  const auto [cos, sin] = tables({65, 4});
  EXPECT_GT(max_difference(rotate_heads(x.clone(), cos, sin, 6), rotate_heads_plain(wrong(x), cos, sin, 6)),
            0x1p-21 * x.abs().max().item<double>());
  EXPECT_GT(max_difference(rotate_heads(x.clone(), cos, wrong(sin), 6), rotate_heads_plain(x, cos, sin, 6)),
            0x1p-21 * x.abs().max().item<double>());
  const auto gate_up = torch::randn({3, 10});
  EXPECT_GT(max_difference(glu(GluKind::swiglu, gate_up), glu_plain(GluKind::swiglu, wrong(gate_up))),
            20 * 0x1p-24 * 10);
  const auto branch = torch::randn({2, 65, 48});
  EXPECT_GT(max_difference(add_rms_norm(x, branch, weight, 1e-5, torch::kFloat).normed,
                           add_rms_norm_plain(x, wrong(branch), weight, 1e-5, torch::kFloat).normed),
            4 * 0x1p-23 * largest);
  const auto hidden = torch::randn({40, 3}), head = torch::randn({50, 3});
  const auto labels = torch::randint(0, 50, {40}, torch::kLong);
  EXPECT_GT(std::abs(head_cross_entropy(wrong(hidden), head, head, labels).item<double>() -
                     head_cross_entropy_plain(hidden, head, labels).item<double>()),
            1e-5);
}

TEST(RmsNorm, HasGradientsForBfloat16OutputCloseToThoseOfFloat) {
  torch::manual_seed(12);
  const auto values = torch::randn({70, 48}), gain = torch::randn({48});
  const auto gradients = [&](torch::ScalarType type) {
    auto x = values.clone().requires_grad_(true), weight = gain.clone().requires_grad_(true);
    (rms_norm(x, weight, type).to(torch::kFloat) * values.roll(1, 0)).sum().backward();
    return std::pair{x.grad(), weight.grad()};
  };
  const auto [dx, dweight] = gradients(torch::kFloat);
  const auto [dx_half, dweight_half] = gradients(torch::kBFloat16);
  // The incoming gradient is rounded to bfloat16 once, an error of 2^-9 in each term; the sums have 48 and 70 terms.
  EXPECT_LE(max_difference(dx, dx_half), 0x1p-9 * 48 * values.abs().max().item<double>());
  EXPECT_LE(max_difference(dweight, dweight_half), 0x1p-9 * values.pow(2).sum(0).max().item<double>() * 2);
  EXPECT_GT(max_difference(dweight, dweight_half), 0) << "rounding should change it";
}

TEST(Peak, GrowsWithTheInstructionAndIsPlausible) {
  const auto peak = measure_peak(1, false, 20);
  EXPECT_GT(peak.gflops, 1.0);
  EXPECT_LT(peak.gflops, 5000.0);
  EXPECT_FALSE(peak.instruction.empty());
  EXPECT_LT(measure_peak(1000, false, 20).gflops, 5000.0 * core_limit().threads) << "counts threads, not cores";
}

}  // namespace
}  // namespace prism
