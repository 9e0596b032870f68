#include "prism/kernels/attention/attend.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prism/core/error.h"
#include "prism/kernels/simd/isa.h"
#include "tests/core/message_of.h"
#include "tests/kernels/attention/attend_truth.h"
#include "tests/kernels/gradient_check.h"

namespace prism {
namespace {

using torch::Tensor;

bool serves(const AttentionInput& input, AttentionBackend backend) {
  return backend != AttentionBackend::flash || flash_backend_serves(input);
}

class Attend : public testing::TestWithParam<std::tuple<AttendCase, AttentionBackend>> {};

TEST_P(Attend, EqualsTheDefinition) {
  const auto& [c, backend] = GetParam();
  const auto input = make_input(c);
  if (!serves(input, backend)) GTEST_SKIP() << "no flash kernels for this processor";
  const auto output = attend(input, backend);
  const auto truth = loop_over_everything(input);
  ASSERT_EQ(output.out_BTHE.sizes(), truth.out_BTHE.sizes());
  EXPECT_EQ(output.out_BTHE.scalar_type(), c.type);
  EXPECT_LE(difference(output, truth), tolerance(input));
  const auto lse = output.lse_BHT.to(torch::kDouble);
  EXPECT_TRUE(torch::equal(lse.isinf(), truth.lse_BHT.isinf()));
  EXPECT_LE(torch::where(lse.isinf(), 0.0, lse - truth.lse_BHT).abs().max().item<double>(), 1e-4);
}

TEST_P(Attend, ExceedsTheToleranceWhenOneKeyIsDropped) {
  const auto& [c, backend] = GetParam();
  if (c.keys < 2) GTEST_SKIP() << "needs a second key";
  const auto input = make_input(c);
  if (!serves(input, backend)) GTEST_SKIP() << "no flash kernels for this processor";
  auto faulty = input;
  faulty.kv.k_BGSD = input.kv.k_BGSD.clone();
  // The key at the first query's position, which some query sees with any mask.
  const int64_t shift = c.lengths ? c.keys - 1 - c.queries : c.keys - c.queries;
  faulty.kv.k_BGSD.select(2, std::max<int64_t>(shift, 0)).fill_(-100);
  EXPECT_GT(difference(attend(faulty, backend), loop_over_everything(input)), tolerance(input));
}

std::vector<AttendCase> cases() {
  std::vector<AttendCase> list;
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    list.push_back({.type = type});
    list.push_back({.heads = 3, .groups = 3, .head_dim = 256, .type = type});
    list.push_back({.queries = 1, .keys = 33, .type = type});
    list.push_back({.queries = 5, .keys = 12, .type = type});
    list.push_back({.queries = 5, .keys = 12, .causality = Causality::full, .type = type});
    list.push_back({.queries = 12, .keys = 5, .type = type});  // the first queries see no key
    list.push_back({.queries = 9, .keys = 9, .lengths = true, .type = type});
    list.push_back({.queries = 4, .keys = 9, .causality = Causality::full, .lengths = true, .type = type});
    list.push_back({.queries = 9, .keys = 9, .documents = true, .type = type});
    list.push_back({.queries = 4, .keys = 10, .documents = true, .type = type});
    list.push_back({.queries = 10, .keys = 10, .causality = Causality::full, .documents = true, .type = type});
    list.push_back({.queries = 9, .keys = 9, .lengths = true, .documents = true, .kept = true, .type = type});
    list.push_back({.queries = 9, .keys = 9, .lengths = true, .kept = true, .weights = true, .type = type});
    list.push_back({.queries = 130, .keys = 300, .heads = 6, .weights = true, .type = type});
    list.push_back({.queries = 1, .keys = 33, .heads = 6, .weights = true, .type = type});
    list.push_back({.queries = 12, .keys = 12, .window = 2, .type = type});
    list.push_back({.queries = 12, .keys = 12, .window = 12, .type = type});  // as wide as the keys
    list.push_back({.queries = 5, .keys = 40, .window = 7, .lengths = true, .type = type});
    list.push_back({.queries = 1, .keys = 33, .window = 20, .type = type});
    list.push_back({.queries = 10, .keys = 10, .window = 2, .documents = true, .kept = true, .type = type});
    list.push_back({.queries = 9, .keys = 30, .window = 10, .blocks = true, .type = type});
    list.push_back({.queries = 30, .keys = 30, .heads = 2, .groups = 1, .head_dim = 24, .blocks = true, .type = type});
    list.push_back({.queries = 9,
                    .keys = 30,
                    .heads = 3,
                    .groups = 1,
                    .head_dim = 8,
                    .blocks = true,
                    .type = type});  // rows begin inside a block
    list.push_back({.queries = 9, .keys = 30, .lengths = true, .blocks = true, .type = type});
  }
  return list;
}

/// All cases, each with every backend that supports it.
std::vector<std::tuple<AttendCase, AttentionBackend>> cases_and_backends() {
  std::vector<std::tuple<AttendCase, AttentionBackend>> list;
  for (const AttendCase& c : cases())
    for (const auto backend : {AttentionBackend::reference, AttentionBackend::flash, AttentionBackend::torch})
      list.emplace_back(c, backend);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attend, testing::ValuesIn(cases_and_backends()));

class AttendGradient : public testing::TestWithParam<std::tuple<AttendCase, AttentionBackend>> {};

TEST_P(AttendGradient, AgreesWithFiniteDifferences) {
  auto [c, backend] = GetParam();
  c.type = torch::kDouble;
  const auto input = make_input(c);
  torch::manual_seed(2);
  const auto weight = torch::randn({c.batch, c.queries, c.heads, c.head_dim}, torch::kDouble);
  const auto loss = [&, backend = backend](AttentionInput moved) {
    return (attend(moved, backend).out_BTHE * weight).sum();
  };
  expect_gradient(
      [&](const Tensor& q) {
        auto moved = input;
        moved.q_BTHD = q;
        return loss(moved);
      },
      input.q_BTHD);
  expect_gradient(
      [&](const Tensor& k) {
        auto moved = input;
        moved.kv.k_BGSD = k;
        return loss(moved);
      },
      input.kv.k_BGSD);
  expect_gradient(
      [&](const Tensor& v) {
        auto moved = input;
        moved.kv.v_BGSE = v;
        return loss(moved);
      },
      input.kv.v_BGSE);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttendGradient,
    testing::Combine(
        testing::Values(
            AttendCase{.batch = 1, .queries = 4, .keys = 4, .heads = 2, .groups = 2, .head_dim = 4},
            AttendCase{.batch = 1, .queries = 3, .keys = 5, .head_dim = 2},
            AttendCase{
                .queries = 6, .keys = 6, .heads = 2, .groups = 1, .head_dim = 2, .lengths = true, .documents = true},
            AttendCase{.batch = 1, .queries = 5, .keys = 3, .heads = 2, .groups = 1, .head_dim = 2}),
        testing::Values(AttentionBackend::reference, AttentionBackend::torch)));

TEST(AttendFlash, SendsTheGradientsOfTheReference) {
  for (const auto& c : {AttendCase{.queries = 40, .keys = 40, .heads = 4, .groups = 2, .head_dim = 24},
                        AttendCase{.queries = 9, .keys = 30, .head_dim = 16, .lengths = true},
                        AttendCase{.queries = 33, .keys = 33, .head_dim = 8, .documents = true, .kept = true},
                        AttendCase{.queries = 33, .keys = 40, .head_dim = 8, .window = 6}}) {
    const auto input = make_input(c);
    if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
    torch::manual_seed(2);
    const auto weight = torch::randn({c.batch, c.queries, c.heads, c.head_dim});
    const auto gradients = [&](AttentionBackend backend) {
      auto moved = input;
      moved.q_BTHD = input.q_BTHD.detach().requires_grad_(true);
      moved.kv.k_BGSD = input.kv.k_BGSD.detach().requires_grad_(true);
      moved.kv.v_BGSE = input.kv.v_BGSE.detach().requires_grad_(true);
      (attend(moved, backend).out_BTHE * weight).sum().backward();
      return std::vector<Tensor>{moved.q_BTHD.grad(), moved.kv.k_BGSD.grad(), moved.kv.v_BGSE.grad()};
    };
    const auto flash = gradients(AttentionBackend::flash), reference = gradients(AttentionBackend::reference);
    for (size_t i = 0; i < flash.size(); ++i)
      EXPECT_TRUE(torch::allclose(flash[i], reference[i], 1e-4, 1e-5)) << c << i;
  }
}

TEST(Attend, SendsGradientsThroughTheWeightsOfHeads) {
  auto input = make_input({.weights = true, .type = torch::kDouble});
  input.head_weights_BH = input.head_weights_BH.to(torch::kDouble);
  for (const auto backend : {AttentionBackend::reference, AttentionBackend::torch})
    for (Tensor AttentionInput::*moved : {&AttentionInput::q_BTHD, &AttentionInput::head_weights_BH}) {
      const auto loss = [&](const Tensor& values) {
        auto changed = input;
        changed.*moved = values;
        const auto out = attend(changed, backend).out_BTHE;
        return (out * torch::linspace(-1, 2, out.numel(), torch::kDouble).view(out.sizes())).sum();
      };
      expect_gradient(loss, input.*moved);
    }
  auto trained = make_input({.weights = true});
  trained.q_BTHD = trained.q_BTHD.detach().requires_grad_(true);
  EXPECT_FALSE(flash_backend_serves(trained));
  trained = make_input({.weights = true});
  trained.head_weights_BH.requires_grad_(true);
  EXPECT_FALSE(flash_backend_serves(trained));
}

TEST(AttendFlash, KeepsANanInTheRowsThatSeeIt) {
  const AttendCase c{.batch = 1, .queries = 20, .keys = 20, .heads = 2, .groups = 2};
  auto input = make_input(c);
  if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
  const auto clean = attend(input, AttentionBackend::flash).out_BTHE;
  input.q_BTHD = input.q_BTHD.clone();
  input.q_BTHD[0][7][1][3] = std::numeric_limits<float>::quiet_NaN();
  const auto out = attend(input, AttentionBackend::flash).out_BTHE;
  EXPECT_TRUE(out[0][7][1].isnan().all().item<bool>());
  auto rest = out.clone();
  rest[0][7][1] = clean[0][7][1];
  EXPECT_TRUE(torch::equal(rest, clean));
}

TEST(AttendFlash, DecodingReadsNoKeyBehindTheLength) {
  constexpr int64_t kLength = 601;
  auto input = make_input({.batch = 1, .queries = 3, .keys = 1200, .heads = 4, .groups = 2});
  if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
  auto shorter = input;
  for (auto member : {&KeyValues::k_BGSD, &KeyValues::v_BGSE}) {
    input.kv.*member = (input.kv.*member).clone();
    shorter.kv.*member = (input.kv.*member).narrow(2, 0, kLength);
    (input.kv.*member).narrow(2, kLength, 1200 - kLength).fill_(std::numeric_limits<float>::quiet_NaN());
  }
  input.kv_lengths_B = torch::tensor({static_cast<int32_t>(kLength)}, torch::kInt);
  const auto found = attend(input, AttentionBackend::flash), expected = attend(shorter, AttentionBackend::flash);
  EXPECT_TRUE(torch::equal(found.out_BTHE, expected.out_BTHE));
  EXPECT_TRUE(torch::equal(found.lse_BHT, expected.lse_BHT));
}

TEST(AttendFlash, APaddedQueryThatIsNanHarmsNoGradient) {
  auto input = make_input({.batch = 1, .queries = 20, .keys = 20, .heads = 2, .groups = 2});
  if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
  input.q_lengths_B = torch::tensor({15}, torch::kInt);
  input.kv_lengths_B = torch::tensor({15}, torch::kInt);
  const auto gradients = [&](double padding) {
    auto moved = input;
    const auto q = input.q_BTHD.clone();
    q.narrow(1, 15, 5).fill_(padding);
    moved.q_BTHD = q.requires_grad_(true);
    moved.kv.k_BGSD = input.kv.k_BGSD.clone().requires_grad_(true);
    moved.kv.v_BGSE = input.kv.v_BGSE.clone().requires_grad_(true);
    attend(moved, AttentionBackend::flash).out_BTHE.square().sum().backward();
    return std::vector<Tensor>{moved.q_BTHD.grad(), moved.kv.k_BGSD.grad(), moved.kv.v_BGSE.grad()};
  };
  const auto clean = gradients(0), padded = gradients(std::numeric_limits<double>::quiet_NaN());
  for (size_t i = 0; i < clean.size(); ++i) EXPECT_TRUE(torch::equal(clean[i], padded[i])) << i;
}

TEST(AttendFlash, ServesHalfPrecision) {
  auto input = make_input({.type = torch::kHalf});
  if (!flash_backend_serves(input)) GTEST_SKIP() << "no flash kernels for this processor";
  const auto out = attend(input).out_BTHE;
  EXPECT_EQ(out.scalar_type(), torch::kHalf);
  EXPECT_LE((out.to(torch::kDouble) - loop_over_everything(input).out_BTHE).abs().max().item<double>(), 4e-3);
}

TEST(Attend, KeepsANaNInTheRowsThatSeeIt) {
  for (const auto type : {torch::kFloat, torch::kBFloat16})
    for (const int64_t queries : {3, 40}) {
      const auto clean = make_input({.queries = queries, .keys = 150, .head_dim = 16, .type = type});
      const auto truth = attend(clean).out_BTHE;
      auto input = clean;
      input.q_BTHD = clean.q_BTHD.clone();
      input.q_BTHD[0][1][0].fill_(std::numeric_limits<float>::quiet_NaN());
      auto found = attend(input).out_BTHE;
      EXPECT_TRUE(found[0][1][0].isnan().all().item<bool>());
      found[0][1][0] = truth[0][1][0];
      EXPECT_TRUE(torch::equal(found, truth)) << "a query's";
      input = clean;
      input.kv.k_BGSD = clean.kv.k_BGSD.clone();
      input.kv.k_BGSD.select(2, 149)[0].fill_(std::numeric_limits<float>::quiet_NaN());  // the last query alone sees it
      found = attend(input).out_BTHE;
      EXPECT_TRUE(found[0][queries - 1].isnan().all().item<bool>());
      found[0][queries - 1] = truth[0][queries - 1];
      EXPECT_TRUE(torch::equal(found, truth)) << "a key's";
    }
}

TEST(AttendBlocks, AreAnchoredAtAbsolutePositionsWhereverAPromptIsCut) {
  const AttendCase c{.batch = 1, .queries = 22, .keys = 22, .heads = 2, .groups = 1, .blocks = true};
  const auto whole = make_input(c);
  const auto expected = attend(whole, AttentionBackend::reference).out_BTHE;
  for (const int64_t cut : {4, 6, 15}) {
    auto part = whole;
    part.q_BTHD = whole.q_BTHD.narrow(1, cut, 22 - cut);
    // The mask of the later part starts with the row of its first query.
    const int64_t row = cut / whole.block_mask.query_block_size;
    part.block_mask.counts_BHM = whole.block_mask.counts_BHM.narrow(2, row, whole.block_mask.counts_BHM.size(2) - row);
    part.block_mask.indices_BHMN =
        whole.block_mask.indices_BHMN.narrow(2, row, whole.block_mask.indices_BHMN.size(2) - row);
    for (const auto backend : {AttentionBackend::reference, AttentionBackend::torch, AttentionBackend::flash}) {
      if (!serves(part, backend)) continue;
      EXPECT_TRUE(torch::allclose(attend(part, backend).out_BTHE, expected.narrow(1, cut, 22 - cut), 1e-4, 1e-5))
          << cut;
      part.first_query = cut;
    }
  }
  auto negative = whole;
  negative.block_mask.indices_BHMN = torch::full_like(whole.block_mask.indices_BHMN, -1);
  EXPECT_THROW(attend(negative), InputError);
}

/// With several tiles of keys, of which a tile of queries sees few.
TEST(AttendWindow, HidesWholeTiles) {
  for (const int64_t queries : {700, 1}) {
    const auto input = make_input({.batch = 1, .queries = queries, .keys = 700, .head_dim = 64, .window = 90});
    const auto expected = attend_reference(input);
    EXPECT_LE((attend(input).out_BTHE - expected.out_BTHE).abs().max().item<double>(), 1e-5);
    auto all = input;
    all.window = 0;
    EXPECT_GT((attend_reference(all).out_BTHE - expected.out_BTHE).abs().max().item<double>(), 1e-2);
  }
}

TEST(AttendCheck, RejectsInputsThatContradictThemselves) {
  auto long_keys = make_input({.batch = 1, .queries = 3, .keys = 8});
  long_keys.kv_lengths_B = torch::tensor({9}, torch::kInt);
  EXPECT_REFUSED(attend(long_keys), "kv_lengths: expected lengths from 0 to 8; found 9");
  long_keys.kv_lengths_B = torch::tensor({-1}, torch::kInt);
  EXPECT_REFUSED(attend(long_keys), "kv_lengths: expected lengths from 0 to 8; found -1");
  const auto good = make_input({});
  auto windowed = good;
  windowed.window = -1;
  EXPECT_REFUSED(attend(windowed), "window: expected 0, or a number of keys for causal attention; found -1");
  windowed.window = 3;
  windowed.causality = Causality::full;
  EXPECT_REFUSED(attend(windowed), "found 3 for full attention");
  const auto expect_rejected = [&](auto change) {
    auto bad = good;
    change(bad);
    EXPECT_THROW(attend(bad), InputError);
  };
  expect_rejected([](auto& i) { i.q_BTHD = i.q_BTHD.narrow(3, 0, 4); });
  expect_rejected([](auto& i) { i.q_BTHD = i.q_BTHD.narrow(2, 0, 3); });
  expect_rejected([](auto& i) { i.q_BTHD = i.q_BTHD.to(torch::kBFloat16); });
  expect_rejected([](auto& i) { i.q_lengths_B = torch::ones({3}, torch::kInt); });
  expect_rejected([](auto& i) { i.kv_lengths_B = torch::ones({2}, torch::kLong); });
  expect_rejected([](auto& i) { i.documents_BS = torch::zeros({2, 3}, torch::kInt); });
  expect_rejected([](auto& i) { i.kept_heads_BH = torch::ones({2, 5}, torch::kBool); });
  expect_rejected([](auto& i) { i.head_weights_BH = torch::ones({2, 5}); });
  expect_rejected([](auto& i) { i.head_weights_BH = torch::ones({2, 4}, torch::kInt); });
  expect_rejected([](auto& i) {
    i.kv.page_table_BN = torch::zeros({2, 1}, torch::kInt);
    i.kv.k_BGSD = i.kv.k_BGSD.clone().requires_grad_(true);
  });
  expect_rejected([](auto& i) { i.kv.page_table_BN = torch::full({2, 1}, 2, torch::kInt); });
  expect_rejected([](auto& i) { i.kv.page_table_BN = torch::full({2, 1}, -1, torch::kInt); });
  expect_rejected([](auto& i) {
    i.kv.page_table_BN = torch::zeros({2, 2}, torch::kInt);
    i.documents_BS = torch::zeros({2, 7}, torch::kInt);  // of one page
  });
  expect_rejected([](auto& i) { i.kv.v_BGSE = torch::randn({2, 2, 8, 7}).transpose(2, 3); });
  const auto mask = listed_mask({});
  expect_rejected([&](auto& i) {
    i.block_mask = mask;
    i.block_mask.key_block_size = 0;
  });
  expect_rejected([&](auto& i) {
    i.block_mask = mask;
    i.block_mask.counts_BHM = mask.counts_BHM + 9;
  });
  expect_rejected([&](auto& i) {
    i.block_mask = mask;
    i.block_mask.counts_BHM = mask.counts_BHM.narrow(1, 0, 3);
    i.block_mask.indices_BHMN = mask.indices_BHMN.narrow(1, 0, 3);
  });
}

TEST(AttendBackend, FallsBackToTheReferenceForOtherValueWidths) {
  auto input = make_input({});
  input.kv.v_BGSE = input.kv.v_BGSE.narrow(3, 0, 4);
  EXPECT_EQ(choose_backend(input), AttentionBackend::reference);
  EXPECT_EQ(attend(input).out_BTHE.size(3), 4);
  EXPECT_THROW(attend(input, AttentionBackend::torch), InputError);
}

}  // namespace
}  // namespace prism
