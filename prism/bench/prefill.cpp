#include "prism/bench/prefill.h"

#include <ATen/Functions.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>

#include "prism/bench/measure.h"
#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/kernels/attention/attend.h"
#include "prism/kernels/compute_type.h"
#include "prism/sparse/mask_statistics.h"
#include "prism/sparse/selectors.h"

namespace prism {
namespace {

constexpr int64_t kLongPrompt = 32768;

/// One method's selector and the mask it selects.
struct Candidate {
  std::unique_ptr<Selector> selector;
  BlockMask mask;
  int64_t extra_bytes = 0;
};

BlockMask choose(const Selector& selector, const SelectorInput& input) {
  return selector.select(input, *selector.make_state(input));
}

Candidate make_candidate(const PrefillMethod& method, const PrefillBench& bench, const SelectorInput& input) {
  Candidate candidate{find_selector(method.selector, method.settings, bench.costs), {}, 0};
  // Warms up: one-time allocations, such as a thread's memory, are not counted.
  if (bench.is_timed) choose(*candidate.selector, input);
  const MemoryPeak peak;
  candidate.mask = choose(*candidate.selector, input);
  if (bench.is_timed) candidate.extra_bytes = peak.extra_bytes();
  return candidate;
}

int64_t rounds_of(const PrefillBench& bench) {
  if (!bench.is_timed) return 0;
  if (bench.rounds > 0) return bench.rounds;
  return bench.tokens < kLongPrompt ? 15 : 3;
}

PrefillHead measured(const HeadStatistics& heads) {
  if (!heads.has_recall()) return {.density = heads.density()};
  return {.density = heads.density(), .recall = heads.recall(), .oracle_density = heads.oracle_density()};
}

/// A row without its times.
PrefillTiming describe(const PrefillBench& bench, const PrefillMethod& method, const Candidate& candidate,
                       const SelectorInput& input) {
  PrefillTiming row;
  row.selector = method.selector;
  row.settings = method.settings;
  row.dtype = bench.dtype;
  row.mix = bench.mix_name;
  row.tokens = bench.tokens;
  row.heads = input.heads();
  row.kv_heads = input.k_BGSD.size(1);
  row.head_dim = input.q_BTHD.size(3);
  row.rounds = rounds_of(bench);
  row.extra_bytes = candidate.extra_bytes;
  const auto heads = measure_mask(input, candidate.mask, bench.recall_rows);
  for (const auto& head : heads) row.by_head.push_back(measured(head));
  const auto all = sum_of(heads);
  const auto of_all = measured(all);
  row.density = of_all.density;
  row.recall = of_all.recall;
  row.oracle_density = of_all.oracle_density;
  const auto unrounded = candidate.selector->unrounded_densities(input);
  if (!unrounded.empty()) row.unrounded_density = statistic(unrounded).mean;
  if (all.has_recall()) row.recall_p5 = all.recall_quantile(0.05);
  return row;
}

/// Times the methods in turn, and dense attention and LibTorch's with them.
void measure_times(const PrefillBench& bench, const SyntheticHeads& heads, const SelectorInput& input,
                   const std::vector<Candidate>& candidates, std::vector<PrefillTiming>& rows) {
  AttentionInput dense;
  dense.q_BTHD = heads.q_BTHD;
  dense.kv = {heads.k_BGSD, heads.v_BGSE, {}};
  const bool has_sdpa = bench.tokens <= bench.sdpa_tokens, is_grouped = heads.k_BGSD.size(1) != heads.q_BTHD.size(2);
  std::vector<std::function<void()>> calls = {[&] { attend(dense); },
                                              [&] {
                                                if (has_sdpa)
                                                  at::scaled_dot_product_attention(
                                                      dense.q_BTHD.transpose(1, 2), dense.kv.k_BGSD, dense.kv.v_BGSE,
                                                      std::nullopt, 0.0,
                                                      /*is_causal=*/true, std::nullopt, is_grouped);
                                              }};
  for (const auto& candidate : candidates) {
    calls.emplace_back([&] { choose(*candidate.selector, input); });
    calls.emplace_back([&] {
      AttentionInput sparse = dense;
      sparse.block_mask = candidate.mask;
      attend(sparse);
    });
  }
  const auto times = medians_in_turn(calls, rounds_of(bench));

  for (size_t i = 0; i < rows.size(); ++i) {
    PrefillTiming& row = rows[i];
    row.select_ms = times[2 + 2 * i];
    row.attend_ms = times[3 + 2 * i];
    row.dense_ms = times[0];
    row.sdpa_ms = has_sdpa ? times[1] : 0;
    row.speedup = row.dense_ms / (row.select_ms + row.attend_ms);
  }
}

}  // namespace

PrefillMethod parse_prefill_method(const std::string& text) {
  const size_t colon = text.find(':');
  PrefillMethod method{text.substr(0, colon), {}};
  std::vector<std::pair<std::string, std::string>> words;
  for (size_t at = colon; at != std::string::npos;) {
    const size_t next = text.find(',', at + 1);
    const std::string word = text.substr(at + 1, next == std::string::npos ? next : next - at - 1);
    const size_t equals = word.find('=');
    PRISM_CHECK(equals != std::string::npos, "bench",
                "expected SELECTOR:NAME=VALUE,...; found \"{}\" in \"{}\"; write NAME=VALUE.", word, text);
    words.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    at = next;
  }
  method.settings = selector_settings(method.selector, words);
  return method;
}

void check_prefill_bench(const PrefillBench& bench) {
  find_compute_type(bench.dtype);
  PRISM_CHECK(bench.tokens > 0 && bench.tokens <= int64_t{1} << 24, "bench",
              "tokens: expected 1 to {}; found {}; change it.", int64_t{1} << 24, bench.tokens);
  for (const auto& method : bench.methods) find_selector(method.selector, method.settings);
  check_synthetic_mix(bench.mix, bench.tokens);
  const double values = static_cast<double>(bench.tokens * bench.mix.head_dim) *
                        static_cast<double>(static_cast<int64_t>(bench.mix.heads.size()) + 2 * bench.mix.kv_heads);
  // Tensors in the dtype, one of them in float32 while it is made, and the output.
  const double needed = 2 * values * static_cast<double>(c10::elementSize(find_compute_type(bench.dtype)));
  check_tensors_fit(needed, fmt::format("{} tokens", bench.tokens));
}

std::vector<PrefillShape> cost_shapes(const PrefillBench& bench) {
  std::vector<PrefillShape> shapes;
  for (const auto& method : bench.methods)
    if (const auto shape =
            cost_shape(method.selector, method.settings, find_compute_type(bench.dtype), bench.mix.head_dim))
      shapes.push_back(*shape);
  return shapes;
}

std::vector<PrefillTiming> bench_prefill(const PrefillBench& bench) {
  check_prefill_bench(bench);
  const torch::NoGradGuard no_gradients;
  const auto heads = make_synthetic_heads(bench.mix, bench.tokens, find_compute_type(bench.dtype));
  const SelectorInput input{
      .q_BTHD = heads.q_BTHD, .k_BGSD = heads.k_BGSD, .q_lengths_B = {}, .kv_lengths_B = {}, .pairs = heads.pairs};
  std::vector<Candidate> candidates;
  std::vector<PrefillTiming> rows;
  for (const auto& method : bench.methods) {
    check_not_stopped("bench");
    candidates.push_back(make_candidate(method, bench, input));
    rows.push_back(describe(bench, method, candidates.back(), input));
  }
  if (bench.is_timed) measure_times(bench, heads, input, candidates, rows);
  return rows;
}

}  // namespace prism
