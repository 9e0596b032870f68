// attend() with block masks and with skipped tiles.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "prism/core/error.h"
#include "prism/kernels/attention/attend.h"
#include "prism/kernels/simd/isa.h"
#include "tests/core/message_of.h"
#include "tests/kernels/isas.h"

namespace prism {
namespace {

/// Queries at the end of the keys, in whole and partial blocks, with a random mask that keeps each query's own block.
struct BlockCase {
  int64_t queries, keys, query_block, key_block, head_dim;
  double share;
  torch::ScalarType type;
  int64_t heads = 4, kv_heads = 2, value_dim = 0;  // 0: as wide as keys
};

AttentionInput blocked_input(const BlockCase& c) {
  torch::manual_seed(c.queries + c.query_block);
  AttentionInput input;
  input.q_BTHD = torch::randn({2, c.queries, c.heads, c.head_dim}).to(c.type);
  const auto random = [&](int64_t width) { return torch::randn({2, c.kv_heads, c.keys, width}).to(c.type); };
  input.kv = {random(c.head_dim), random(c.value_dim == 0 ? c.head_dim : c.value_dim), {}};
  const int64_t first = c.keys - c.queries, first_row = first / c.query_block;
  const int64_t rows = (c.keys - 1) / c.query_block - first_row + 1, blocks = (c.keys + c.key_block - 1) / c.key_block;
  auto kept = torch::rand({2, c.heads, rows, blocks}) < c.share;
  for (int64_t m = 0; m < rows; ++m)
    kept.select(2, m).select(2, (first_row + m) * c.query_block / c.key_block).fill_(true);
  input.block_mask = make_block_mask(kept, c.query_block, c.key_block);
  return input;
}

TEST(AttendBlocks, EqualTheReferenceForRandomMasksOnEveryInstructionSet) {
  const BlockCase cases[] = {{600, 600, 128, 128, 64, 0.3, torch::kBFloat16},
                             {600, 900, 64, 256, 64, 0.2, torch::kFloat},
                             {333, 777, 32, 32, 128, 0.4, torch::kBFloat16},
                             {70, 1100, 256, 32, 24, 0.3, torch::kFloat},
                             {600, 600, 128, 64, 80, 1.0, torch::kBFloat16},
                             {5, 300, 128, 64, 64, 0.5, torch::kFloat},
                             {400, 600, 64, 128, 96, 0.3, torch::kBFloat16, 8, 1, 40},
                             {400, 600, 128, 128, 192, 0.3, torch::kFloat, 4, 4, 128},
                             {300, 500, 64, 64, 64, 0.3, torch::kBFloat16, 8, 2, 64},
                             {300, 600, 256, 256, 256, 0.5, torch::kBFloat16, 8, 1, 64}};
  for (const Isa isa : usable_isas_from(Isa::avx2)) {
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
  for (const Isa isa : usable_isas_from(Isa::avx2)) {
    const IsaScope scope(isa);
    for (const int64_t key_block : {32, 64, 128}) {
      // Head 0 keeps every second block. Head 1, which reads the same keys, keeps all.
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

/// Queries 0 to 2047 of 2 sequences in blocks of 64, float32.
AttentionInput prompt_of_2048(double share) {
  return blocked_input({2048, 2048, 64, 64, 32, share, torch::kFloat, 2, 1});
}

TEST(AttendBlocks, AreCausalAttentionWhereAllAreKept) {
  auto input = prompt_of_2048(1);
  const auto found = attend(input);
  input.block_mask = {};
  EXPECT_LE((attend(input).out_BTHE - found.out_BTHE).abs().max().item<float>(), 1e-5);
}

TEST(AttendBlocks, AreLibTorchsCausalAttentionWhereAllAreKept) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto input = blocked_input({700, 700, 128, 64, 64, 1, type, 4, 2});
    const auto repeated = [](const torch::Tensor& x) { return x.repeat_interleave(2, 1).to(torch::kDouble); };
    const auto expected =
        at::scaled_dot_product_attention(input.q_BTHD.transpose(1, 2).to(torch::kDouble), repeated(input.kv.k_BGSD),
                                         repeated(input.kv.v_BGSE), std::nullopt, 0.0, /*is_causal=*/true);
    const auto found = attend(input).out_BTHE.transpose(1, 2).to(torch::kDouble);
    EXPECT_LE((found - expected).abs().max().item<double>(), type == torch::kFloat ? 1e-5 : 2e-2);
  }
}

TEST(AttendBlocks, MayBeSharedByTheHeadsOfAGroup) {
  for (const int64_t shared : {1, 2}) {  // one mask for all heads, one for each key/value head
    auto input = blocked_input({300, 500, 64, 64, 64, 0.3, torch::kFloat, 8, 2});
    const auto kept = kept_blocks(input.block_mask, 8).slice(1, 0, shared);
    input.block_mask = make_block_mask(kept, 64, 64);
    const auto found = attend(input, AttentionBackend::flash);
    const auto plain = attend(input, AttentionBackend::reference);
    EXPECT_LE((found.out_BTHE - plain.out_BTHE).abs().max().item<float>(), 1e-5);
    input.block_mask = make_block_mask(kept.repeat_interleave(8 / shared, 1), 64, 64);
    EXPECT_TRUE(torch::equal(attend(input, AttentionBackend::flash).out_BTHE, found.out_BTHE));
  }
  auto input = blocked_input({300, 500, 64, 64, 64, 0.3, torch::kFloat, 8, 2});
  input.block_mask = make_block_mask(kept_blocks(input.block_mask, 8).slice(1, 0, 3), 64, 64);
  EXPECT_REFUSED(attend(input), "or a divisor of");
}

TEST(AttendBlocks, OnTheDiagonalAreAttentionOfEachBlockByItself) {
  auto input = prompt_of_2048(0);
  const auto found = attend(input).out_BTHE;
  for (const int64_t block : {0, 7, 31}) {
    AttentionInput alone;
    alone.q_BTHD = input.q_BTHD.narrow(1, 64 * block, 64);
    alone.kv = {input.kv.k_BGSD.narrow(2, 64 * block, 64), input.kv.v_BGSE.narrow(2, 64 * block, 64), {}};
    EXPECT_LE((attend(alone).out_BTHE - found.narrow(1, 64 * block, 64)).abs().max().item<float>(), 1e-5) << block;
  }
}

TEST(AttendBlocks, GiveAPromptInPiecesWhatTheyGiveTheWhole) {
  const auto input = prompt_of_2048(0.3);
  const auto kept = kept_blocks(input.block_mask, 32);
  const auto whole = attend(input).out_BTHE;
  for (const int64_t chunk : {128, 200, 1024}) {
    for (int64_t first = 0; first < 2048; first += chunk) {
      const int64_t count = std::min<int64_t>(chunk, 2048 - first), end = first + count;
      const int64_t row = first / 64, rows = (end - 1) / 64 - row + 1, blocks = (end + 63) / 64;
      AttentionInput part;
      part.q_BTHD = input.q_BTHD.narrow(1, first, count);
      part.kv = {input.kv.k_BGSD.narrow(2, 0, end), input.kv.v_BGSE.narrow(2, 0, end), {}};
      part.block_mask = make_block_mask(kept.narrow(2, row, rows).narrow(3, 0, blocks), 64, 64);
      const auto found = attend(part).out_BTHE;
      EXPECT_LE((found - whole.narrow(1, first, count)).abs().max().item<float>(), 1e-5) << chunk << " at " << first;
    }
  }
}

TEST(AttendBlocks, LetNoQuerySeeWhatComesAfterIt) {
  auto input = prompt_of_2048(0.5);
  const auto before = attend(input).out_BTHE;
  for (const int64_t token : {63, 64, 1000, 2047}) {
    auto changed = input;
    changed.q_BTHD = input.q_BTHD.clone();
    changed.kv = {input.kv.k_BGSD.clone(), input.kv.v_BGSE.clone(), {}};
    changed.q_BTHD.select(1, token).neg_();
    for (auto* tensor : {&changed.kv.k_BGSD, &changed.kv.v_BGSE}) tensor->select(2, token).neg_();
    const auto after = attend(changed).out_BTHE;
    EXPECT_TRUE(torch::equal(after.narrow(1, 0, token), before.narrow(1, 0, token))) << token;
    EXPECT_FALSE(torch::equal(after.select(1, token), before.select(1, token))) << token;
  }
}

TEST(AttendBlocks, GiveEachSequenceOfARaggedBatchWhatTheyGiveItAlone) {
  const std::vector<int64_t> lengths = {1, 130, 777, 2048};
  torch::manual_seed(9);
  AttentionInput input;
  input.q_BTHD = torch::randn({4, 2048, 2, 32});
  input.kv = {torch::randn({4, 1, 2048, 32}), torch::randn({4, 1, 2048, 32}), {}};
  input.q_lengths_B = input.kv_lengths_B = torch::tensor({1, 130, 777, 2048}, torch::kInt);
  auto kept = torch::rand({4, 2, 32, 32}) < 0.3;
  kept.diagonal(0, 2, 3).fill_(true);
  input.block_mask = make_block_mask(kept, 64, 64);
  const auto together = attend(input);
  for (int64_t b = 0; b < 4; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)], blocks = (length + 63) / 64;
    AttentionInput alone;
    alone.q_BTHD = input.q_BTHD.narrow(0, b, 1).narrow(1, 0, length);
    alone.kv = {
        input.kv.k_BGSD.narrow(0, b, 1).narrow(2, 0, length), input.kv.v_BGSE.narrow(0, b, 1).narrow(2, 0, length), {}};
    alone.block_mask = make_block_mask(kept.narrow(0, b, 1).narrow(2, 0, blocks).narrow(3, 0, blocks), 64, 64);
    const auto found = attend(alone);
    EXPECT_TRUE(torch::equal(found.out_BTHE, together.out_BTHE.narrow(0, b, 1).narrow(1, 0, length))) << length;
    EXPECT_TRUE(torch::equal(found.lse_BHT, together.lse_BHT.narrow(0, b, 1).narrow(2, 0, length))) << length;
  }
}

// lse = log(e^lse_a + e^lse_b),  out = e^(lse_a - lse) out_a + e^(lse_b - lse) out_b
TEST(AttendBlocks, OfTwoHalvesOfTheKeysMergeToTheWhole) {
  auto input = prompt_of_2048(0.5);
  const auto whole = attend(input);
  const auto kept = kept_blocks(input.block_mask, 32);
  std::vector<AttentionOutput> halves;
  for (const int64_t half : {0, 1}) {
    auto of_half = torch::zeros_like(kept);
    of_half.slice(3, half, 32, 2).copy_(kept.slice(3, half, 32, 2));
    input.block_mask = make_block_mask(of_half, 64, 64);
    halves.push_back(attend(input));
  }
  const auto lse_BHT = torch::logaddexp(halves[0].lse_BHT, halves[1].lse_BHT);
  auto out_BTHE = torch::zeros_like(whole.out_BTHE);
  for (const auto& half : halves)  // e^-inf is 0 where a query sees no key of a half
    out_BTHE += (half.lse_BHT - lse_BHT).exp().transpose(1, 2).unsqueeze(3) * half.out_BTHE;
  EXPECT_LE((out_BTHE - whole.out_BTHE).abs().max().item<float>(), 1e-5);
  EXPECT_LE((lse_BHT - whole.lse_BHT).abs().max().item<float>(), 1e-5);
}

TEST(SkipShare, LeavesOutWhatHardlyCounts) {
  constexpr double kShare = 1e-3;
  for (const Isa isa : usable_isas_from(Isa::avx2)) {
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
      // The skipped attention, 1 - e^(lse - lse of all keys), is at most the share for each key.
      const auto left_out = (1 - (less.lse_BHT - whole.lse_BHT).to(torch::kDouble).exp()).transpose(1, 2);
      EXPECT_GT(left_out.max().item<double>(), 1e-6) << "nothing was skipped";
      EXPECT_LE(left_out.max().item<double>(), 1400 * kShare);
      const auto error = (less.out_BTHE - whole.out_BTHE).to(torch::kDouble).abs().amax(-1);
      const double largest = input.kv.v_BGSE.abs().max().item<double>();
      // lse is below 128, so the difference of two has an error of up to 2^-16.
      EXPECT_TRUE((error <= 2 * largest * (left_out.clamp_min(0) + 0x1p-16) + 1e-5).all().item<bool>());
    }
  }
}

TEST(SkipShare, LeavesOutNoNan) {
  for (const Isa isa : usable_isas_from(Isa::avx2)) {
    const IsaScope scope(isa);
    auto input = blocked_input({600, 1400, 64, 64, 64, 1.0, torch::kFloat});
    input.block_mask = {};
    input.q_BTHD *= 16;
    // Zero keys have scores far below the others; one of them is NaN.
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
