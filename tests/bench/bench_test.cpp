// What the benchmarks measure: turns, medians, shapes. No test depends on a time.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>

#include "prism/bench/attention.h"
#include "prism/bench/measure.h"
#include "prism/bench/prefill.h"
#include "prism/bench/training.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/kernels/simd/isa.h"
#include "prism/models/cost.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

TEST(TakeTurns, AlternatesAfterOneCallOfEachThatDoesNotCount) {
  std::string calls;
  const auto medians = take_turns([&] { calls += 'a'; }, [&] { calls += 'b'; }, 3);
  EXPECT_EQ(calls, "abababab");
  EXPECT_GE(medians.prism_ms, 0);
}

TEST(TakeTurns, StopsAtASignal) {
  // A process remembers the caught signal, so the test runs in its own process.
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto interrupted = [] {
    catch_stop_signals();
    int calls = 0;
    try {
      medians_in_turn({[&] { ++calls; },
                       [&] {
                         if (++calls == 5) std::raise(SIGINT);
                       },
                       [&] { ++calls; }},
                      5);
    } catch (const FailedError&) {
      std::_Exit(calls == 5 ? 0 : 2);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(0), "");
}

TEST(TakeTurns, TakesTheLimitInItsTurn) {
  std::string calls;
  take_turns([&] { calls += 'a'; }, [&] { calls += 'b'; }, 2, [&] { calls += 'c'; });
  EXPECT_EQ(calls, "abcabcabc");
}

TEST(ReadThrough, SumsEveryWordOnAnyNumberOfThreads) {
  std::vector<uint64_t> words(1001);
  std::iota(words.begin(), words.end(), uint64_t{1});
  for (const int threads : {1, 2, 3}) EXPECT_EQ(read_through(words.data(), 8008, threads), 501'501u) << threads;
}

TEST(MemoryPeak, SeesWhatWasTakenAndGivenBack) {
  const MemoryPeak peak;
  {
    const std::vector<uint8_t> memory(size_t{1} << 26, 1);
    EXPECT_EQ(memory.back(), 1);
  }
  EXPECT_GT(peak.extra_bytes(), int64_t{60} << 20);
  EXPECT_LT(peak.extra_bytes(), int64_t{80} << 20);
}

TEST(PeakTensorBytes, CountsWhatIsHeldAtOnce) {
  const auto call = [] {
    for (int i = 0; i < 3; ++i) torch::empty({1 << 20}, torch::kFloat);  // one after the other
    const auto one = torch::empty({1 << 20}, torch::kFloat), two = torch::empty({1 << 19}, torch::kFloat);
  };
  EXPECT_EQ(peak_tensor_bytes(call), 4 * ((1 << 20) + (1 << 19)));
  EXPECT_EQ(peak_tensor_bytes(call), 4 * ((1 << 20) + (1 << 19)));
}

TEST(PrefillBench, MeasuresEveryMethodBesideDense) {
  PrefillBench bench;
  bench.methods = {parse_prefill_method("spectral:p=0.5,block_size=32"), parse_prefill_method("dense")};
  bench.mix = {.seed = 1, .head_dim = 16, .kv_heads = 1, .base = 1e4, .noise = 1, .heads = {{}, {.sink = 5}}};
  bench.dtype = "float32";
  bench.tokens = 300;
  bench.rounds = 1;
  const auto rows = bench_prefill(bench);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].selector, "spectral");
  EXPECT_EQ(rows[0].settings["p"], 0.5);
  EXPECT_LT(rows[0].density, 1);
  EXPECT_LT(rows[0].recall, 1);
  EXPECT_EQ(rows[1].density, 1);
  EXPECT_NEAR(rows[1].recall, 1, 1e-9);
  for (const auto& row : rows) {
    EXPECT_EQ(row.heads, 2);
    ASSERT_EQ(row.by_head.size(), 2u);
    EXPECT_NEAR((row.by_head[0].density + row.by_head[1].density) / 2, row.density, 1e-9);
    EXPECT_NEAR((row.by_head[0].recall + row.by_head[1].recall) / 2, row.recall, 1e-9);
    EXPECT_GT(row.attend_ms, 0);
    EXPECT_GT(row.sdpa_ms, 0);
    EXPECT_NEAR(row.speedup, row.dense_ms / (row.select_ms + row.attend_ms), 1e-9);
  }
  bench.sdpa_tokens = 0;
  EXPECT_EQ(bench_prefill(bench)[0].sdpa_ms, 0);
  bench.is_timed = false;
  const auto untimed = bench_prefill(bench)[0];
  EXPECT_EQ(untimed.recall, rows[0].recall);
  EXPECT_EQ(untimed.density, rows[0].density);
  EXPECT_EQ(untimed.rounds, 0);
  EXPECT_EQ(untimed.select_ms + untimed.attend_ms + untimed.dense_ms + untimed.sdpa_ms + untimed.speedup, 0);
  EXPECT_EQ(untimed.extra_bytes, 0);
}

TEST(PrefillMethod, IsANameWithSettings) {
  EXPECT_EQ(parse_prefill_method("xattention").selector, "xattention");
  EXPECT_EQ(parse_prefill_method("random:share=0.1,seed=3").settings["seed"], 3);
  EXPECT_THROW(parse_prefill_method("spectrl"), InputError);
  EXPECT_THROW(parse_prefill_method("spectral:p"), InputError);
  EXPECT_THROW(parse_prefill_method("spectral:q=1"), InputError);
  PrefillBench bench;
  bench.mix.heads.resize(8);
  bench.tokens = 0;
  EXPECT_THROW(check_prefill_bench(bench), InputError);
  bench.tokens = int64_t{1} << 24;
  EXPECT_THROW(check_prefill_bench(bench), InputError) << "does not fit";
}

TEST(TakeTurns, GoesAlone) {
  int calls = 0;
  EXPECT_EQ(take_turns([&] { ++calls; }, {}, 3).peer_ms, 0);
  EXPECT_EQ(calls, 4);
}

TrainingCase one_layer() {
  TrainingCase tested{"one layer", {}, 2};
  tested.model.vocab_size = 50;
  tested.model.d_model = 16;
  tested.model.context = 8;
  tested.model.schedule = "2x1";
  tested.model.ffn_width = 24;
  expand_shorthand(tested.model);
  complete(tested.model);
  return tested;
}

TEST(BenchTraining, ComparesWithTheSameModelOnLibTorch) {
  const Isa before = current_isa();
  const auto row = bench_training(
      one_layer(), {.dtype = "float32", .peer = find_training_peer("libtorch"), .steps = 2, .threads = 1});
  EXPECT_EQ(current_isa(), before) << "only the peer uses LibTorch's operations";
  EXPECT_EQ(row.tokens, 8);
  EXPECT_GT(row.prism_ms, 0);
  EXPECT_DOUBLE_EQ(row.ratio, row.peer_ms / row.prism_ms);
  EXPECT_NEAR(row.tokens_per_s, 16 / row.prism_ms * 1e3, 1e-6 * row.tokens_per_s);
  EXPECT_EQ(bench_training(one_layer(), {.dtype = "float32", .peer = find_training_peer("none"), .steps = 1}).peer_ms,
            0);
  EXPECT_REFUSED(find_training_peer("pytorch"), "libtorch, none or a case");
  const std::string recipe = PRISM_SOURCE_DIR "/configs/head_schedules/small_prism.json";
  EXPECT_EQ(find_training_peer(recipe).name, "small_prism");
  EXPECT_EQ(find_training_peer(recipe).name, find_training_case(recipe).name);
  EXPECT_REFUSED(find_training_case("smal"), "did you mean small?");
}

TEST(BenchTraining, TakesClassifiersAndHeadBudgets) {
  for (const int64_t classes : {0, 3}) {
    ModelConfig config;
    config.vocab_size = 50;
    config.d_model = 16;
    config.context = 8;
    config.classes = classes;
    config.attention = classes > 0 ? "full" : "causal";
    config.schedule = "4x1";
    config.ffn_width = 24;
    TrainingCase plain{.name = "plain", .model = config, .rows = 2},
        budget{.name = "budget", .model = config, .rows = 2};
    budget.model.each.budget.kind = "learned";
    for (auto* measured : {&plain, &budget}) {
      expand_shorthand(measured->model);
      complete(measured->model);
    }
    const auto row = bench_training(budget, {.dtype = "float32", .peer = {"plain", plain}, .steps = 2});
    EXPECT_GT(row.ratio, 0) << classes;
    EXPECT_EQ(row.parameters, model_cost(plain.model).parameters + 16 * 16 + 16 + 16 + 1 + 4 * 16 + 4);
  }
}

TEST(BenchTraining, TrainsASkipHeadToo) {
  auto skips = one_layer();
  skips.model.skip = 2;
  const auto plain = bench_training(one_layer(), {.dtype = "float32", .steps = 2, .threads = 1}),
             row =
                 bench_training(skips, {.dtype = "float32", .peer = {"plain", one_layer()}, .steps = 2, .threads = 1});
  EXPECT_GT(row.ratio, 0);
  EXPECT_EQ(row.parameters, plain.parameters) << "published counts are without it";
}

TEST(BenchTraining, SharesAStepOutToItsOperations) {
  const auto operations = profile_training(one_layer(), {.dtype = "float32", .steps = 3, .threads = 1});
  std::map<std::string, OperationTime> times;
  for (const auto& time : operations) {
    EXPECT_GE(time.ms, 0) << time.operation;
    times[time.operation] = time;
  }
  EXPECT_EQ(times["prism::optimizer"].calls, 1);
  EXPECT_EQ(times["prism::linear"].calls, 4) << "qkv, out, gate and up, down";
  EXPECT_EQ(times["prism::linear_backward"].calls, 4);
  if (current_isa() != Isa::portable) {
    EXPECT_EQ(times["prism::attend"].calls, 1);
    EXPECT_EQ(times["prism::add_norm"].calls, 3);
  }
  for (size_t i = 1; i < operations.size(); ++i) EXPECT_GE(operations[i - 1].ms, operations[i].ms);
}

TEST(BenchAttention, NamesTheShapeItMeasured) {
  const AttentionShape shape{.batch = 2, .heads = 4, .kv_heads = 2, .tokens = 5, .keys = 9, .head_dim = 8};
  const auto row = bench_attention(shape, {.dtype = "float32", .pass = "forward", .rounds = 1, .threads = 1});
  EXPECT_EQ(row.kv_heads, 2);
  EXPECT_EQ(row.keys, 9);
  EXPECT_GT(row.prism_ms, 0);
  EXPECT_DOUBLE_EQ(row.ratio, row.peer_ms / row.prism_ms);
  EXPECT_GT(row.peak_share, 0);
}

TEST(BenchAttention, RefusesShapesThatMakeNoSense) {
  const AttentionBench bench{.rounds = 1};
  EXPECT_REFUSED(bench_attention({.heads = 4, .kv_heads = 3}, bench), "divide 4 heads");
  EXPECT_REFUSED(bench_attention({.tokens = 9, .keys = 5}, bench), "at least as many keys");
  EXPECT_REFUSED(bench_attention({.lengths = "odd"}, bench), "ragged");
  EXPECT_REFUSED(bench_attention({}, {.pass = "back"}), "forward_backward");
  EXPECT_REFUSED(bench_attention({.tokens = 1 << 20, .keys = 1 << 24}, bench), "fit into memory");
}

TEST(BenchAttention, NamesTheBackendThatServed) {
  const AttentionBench bench{.dtype = "float32", .rounds = 1, .threads = 1};
  EXPECT_EQ(bench_attention({.heads = 1, .tokens = 4, .head_dim = 12}, bench).backend, "torch");
  EXPECT_EQ(bench_attention({.heads = 1, .tokens = 4, .head_dim = 16}, bench).backend,
            current_isa() == Isa::portable ? "torch" : "flash");
}

TEST(BenchDecode, TakesGroupedHeadsAndAFewQueries) {
  const AttentionShape shape{.heads = 4, .kv_heads = 1, .tokens = 3, .keys = 40, .head_dim = 8};
  const AttentionBench bench{.dtype = "bfloat16", .pass = "decode", .rounds = 1, .threads = 1, .decode_bytes = 4096};
  const auto row = bench_attention(shape, bench);
  EXPECT_EQ(row.bench, "decode");
  EXPECT_EQ(row.pass, "decode");
  EXPECT_EQ(row.kv_heads, 1);
  EXPECT_EQ(row.tokens, 3);
  EXPECT_GT(row.peak_share, 0);
}

}  // namespace
}  // namespace prism
