// attend() over kept blocks of keys, and without tiles that hardly count.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "prism/core/error.h"
#include "prism/kernels/attend.h"
#include "prism/kernels/simd/isa.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

/// Queries at the end of the keys, both in whole and cut blocks, a random mask that keeps each query's own block.
struct BlockCase {
  int64_t queries, keys, query_block, key_block, head_dim;
  double share;
  torch::ScalarType type;
};

AttentionInput blocked_input(const BlockCase& c) {
  torch::manual_seed(c.queries + c.query_block);
  AttentionInput input;
  input.q_BTHD = torch::randn({2, c.queries, 4, c.head_dim}).to(c.type);
  input.kv = {
      torch::randn({2, 2, c.keys, c.head_dim}).to(c.type), torch::randn({2, 2, c.keys, c.head_dim}).to(c.type), {}};
  const int64_t first = c.keys - c.queries, first_row = first / c.query_block;
  const int64_t rows = (c.keys - 1) / c.query_block - first_row + 1, blocks = (c.keys + c.key_block - 1) / c.key_block;
  auto kept = torch::rand({2, 4, rows, blocks}) < c.share;
  for (int64_t m = 0; m < rows; ++m)
    kept.select(2, m).select(2, (first_row + m) * c.query_block / c.key_block).fill_(true);
  input.block_mask = make_block_mask(kept, c.query_block, c.key_block);
  return input;
}

TEST(AttendBlocks, EqualTheReferenceForRandomMasksOnEveryInstructionSet) {
  const BlockCase cases[] = {
      {600, 600, 128, 128, 64, 0.3, torch::kBFloat16}, {600, 900, 64, 256, 64, 0.2, torch::kFloat},
      {333, 777, 32, 32, 128, 0.4, torch::kBFloat16},  {70, 1100, 256, 32, 24, 0.3, torch::kFloat},
      {600, 600, 128, 64, 80, 1.0, torch::kBFloat16},  {5, 300, 128, 64, 64, 0.5, torch::kFloat}};
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16}) {
    if (isa > current_isa()) break;
    const IsaScope scope(isa);
    for (const auto& c : cases) {
      SCOPED_TRACE(testing::Message() << isa_name(isa) << " T" << c.queries << " S" << c.keys << " " << c.query_block
                                      << " x " << c.key_block << " D" << c.head_dim);
      const auto input = blocked_input(c);
      const auto found = attend(input, AttentionBackend::flash);
      auto exact = input;
      exact.q_BTHD = input.q_BTHD.to(torch::kDouble);
      exact.kv = {input.kv.k_BGSD.to(torch::kDouble), input.kv.v_BGSE.to(torch::kDouble), {}};
      const auto truth = attend(exact, AttentionBackend::reference);
      const double error = (found.out_BTHE.to(torch::kDouble) - truth.out_BTHE).abs().max().item<double>();
      EXPECT_LE(error, c.type == torch::kFloat ? 1e-5 : 2e-2);
      EXPECT_TRUE(torch::allclose(found.lse_BHT.to(torch::kDouble), truth.lse_BHT, 1e-4, 1e-4));
      at::set_num_threads(1);
      const auto single = attend(input, AttentionBackend::flash);
      at::set_num_threads(3);
      EXPECT_TRUE(torch::equal(attend(input, AttentionBackend::flash).out_BTHE, single.out_BTHE));
      at::set_num_threads(1);
    }
  }
}

TEST(AttendBlocks, ReadNothingOfBlocksThatARowDoesNotKeep) {
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16}) {
    if (isa > current_isa()) break;
    const IsaScope scope(isa);
    for (const int64_t key_block : {32, 64, 128}) {
      // Head 0 keeps every second block, head 1, which reads the same keys, all.
      const BlockCase c{256, 512, 64, key_block, 64, 1.0, torch::kBFloat16};
      auto input = blocked_input(c);
      auto kept = torch::ones({2, 4, 4, 512 / key_block}, torch::kBool);
      kept.select(1, 0).slice(-1, 1, 4).fill_(false);
      input.block_mask = make_block_mask(kept, 64, key_block);
      const auto before = attend(input, AttentionBackend::flash);
      for (const float anything : {std::numeric_limits<float>::quiet_NaN(), 1e30f}) {
        auto harmed = input;
        harmed.kv = {input.kv.k_BGSD.clone(), input.kv.v_BGSE.clone(), {}};
        for (auto* tensor : {&harmed.kv.k_BGSD, &harmed.kv.v_BGSE})
          tensor->slice(2, key_block, std::min<int64_t>(4 * key_block, 256)).fill_(anything);
        const auto after = attend(harmed, AttentionBackend::flash);
        EXPECT_TRUE(torch::equal(after.out_BTHE.select(2, 0), before.out_BTHE.select(2, 0)))
            << isa_name(isa) << key_block;
        EXPECT_FALSE(torch::equal(after.out_BTHE.select(2, 1), before.out_BTHE.select(2, 1)));
      }
    }
  }
}

TEST(SkipShare, LeavesOutWhatHardlyCounts) {
  constexpr double kShare = 1e-3;
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16}) {
    if (isa > current_isa()) break;
    const IsaScope scope(isa);
    SCOPED_TRACE(isa_name(isa));
    auto input = blocked_input({600, 1400, 64, 64, 64, 0.5, torch::kFloat});
    input.q_BTHD *= 16;  // scores far apart
    for (const bool masked : {true, false}) {
      if (!masked) input.block_mask = {};
      input.skip_share = 0;
      const auto whole = attend(input, AttentionBackend::flash);
      input.skip_share = 1e-40;
      EXPECT_TRUE(torch::equal(attend(input, AttentionBackend::flash).out_BTHE, whole.out_BTHE));
      input.skip_share = kShare;
      const auto less = attend(input, AttentionBackend::flash);
      // The attention that is left out: 1 - e^(lse - lse of all), at most the share for each key.
      const auto left_out = (1 - (less.lse_BHT - whole.lse_BHT).to(torch::kDouble).exp()).transpose(1, 2);
      EXPECT_GT(left_out.max().item<double>(), 1e-6) << "nothing is left out";
      EXPECT_LE(left_out.max().item<double>(), 1400 * kShare);
      const auto error = (less.out_BTHE - whole.out_BTHE).to(torch::kDouble).abs().amax(-1);
      const double largest = input.kv.v_BGSE.abs().max().item<double>();
      // lse is below 128, so that two of them say 2^-16 of what is left out.
      EXPECT_TRUE((error <= 2 * largest * (left_out.clamp_min(0) + 0x1p-16) + 1e-5).all().item<bool>());
    }
  }
}

TEST(SkipShare, LeavesOutNoNan) {
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16}) {
    if (isa > current_isa()) break;
    const IsaScope scope(isa);
    auto input = blocked_input({600, 1400, 64, 64, 64, 1.0, torch::kFloat});
    input.block_mask = {};
    input.q_BTHD *= 16;
    // Keys of zeros have scores far below the others; one among them is NaN.
    input.kv.k_BGSD.slice(2, 1024, 1280).zero_();
    input.kv.k_BGSD.select(2, 1100).fill_(std::numeric_limits<float>::quiet_NaN());
    input.skip_share = 1e-3;
    const auto found = attend(input, AttentionBackend::flash);
    const int64_t first = 1100 - 800;  // the first query that sees it
    EXPECT_TRUE(found.out_BTHE.slice(1, first).isnan().all().item<bool>()) << isa_name(isa);
    EXPECT_FALSE(found.lse_BHT.slice(2, 0, first).isnan().any().item<bool>()) << isa_name(isa);
  }
}

TEST(SkipShare, IsNotForGradients) {
  auto input = blocked_input({64, 64, 64, 64, 32, 1.0, torch::kFloat});
  input.block_mask = {};
  input.skip_share = 1e-3;
  input.q_BTHD.requires_grad_();
  EXPECT_FALSE(flash_backend_serves(input));
  input.skip_share = 0;
  EXPECT_EQ(flash_backend_serves(input), current_isa() != Isa::portable);
  input.skip_share = 1.5;
  EXPECT_REFUSED(attend(input), "skip share: expected 0 to 1; found 1.5");
}

TEST(AttendBlocks, GiveZerosToARowThatKeepsNone) {
  auto input = blocked_input(BlockCase{128, 128, 64, 64, 32, 1.0, torch::kFloat});
  input.block_mask.counts_BHM.select(2, 1).zero_();
  for (const auto backend : {AttentionBackend::reference, AttentionBackend::flash}) {
    if (backend == AttentionBackend::flash && !flash_backend_serves(input)) continue;
    const auto found = attend(input, backend);
    EXPECT_EQ(found.out_BTHE.slice(1, 64).abs().max().item<float>(), 0);
    EXPECT_TRUE(found.lse_BHT.slice(2, 64).isneginf().all().item<bool>());
    EXPECT_FALSE(found.lse_BHT.slice(2, 0, 64).isinf().any().item<bool>());
  }
}

}  // namespace
}  // namespace prism
