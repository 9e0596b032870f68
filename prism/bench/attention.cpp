#include "prism/bench/attention.h"

#include <ATen/Functions.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/kernels/attention/attend.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/memory/huge_pages.h"

namespace prism {
namespace {

AttentionShape checked(AttentionShape shape) {
  if (shape.keys == 0) shape.keys = shape.tokens;
  if (shape.kv_heads == 0) shape.kv_heads = shape.heads;
  for (const auto& [name, size] : {std::pair{"batch", shape.batch},
                                   {"heads", shape.heads},
                                   {"kv_heads", shape.kv_heads},
                                   {"tokens", shape.tokens},
                                   {"keys", shape.keys},
                                   {"head_dim", shape.head_dim}})
    PRISM_CHECK(size > 0 && size <= 1 << 24, "bench", "{}: expected a size within 1-{}; found {}; change it.", name,
                1 << 24, size);
  PRISM_CHECK(shape.heads % shape.kv_heads == 0, "bench",
              "expected kv_heads that divide {} heads; found {}; choose a divisor.", shape.heads, shape.kv_heads);
  PRISM_CHECK(shape.keys >= shape.tokens, "bench",
              "expected at least as many keys as the {} tokens; found {}; raise it.", shape.tokens, shape.keys);
  PRISM_CHECK(shape.lengths == "full" || shape.lengths == "ragged", "bench",
              "expected lengths full or ragged; found \"{}\"; choose one of them.", shape.lengths);
  return shape;
}

/// Queries and keys of sequence b.
std::pair<int64_t, int64_t> lengths_of(const AttentionShape& shape, int64_t b) {
  if (shape.lengths == "full") return {shape.tokens, shape.keys};
  const auto part = [&](int64_t all) { return std::max<int64_t>(1, all * (b + 1) / shape.batch); };
  return {part(shape.tokens), std::max(part(shape.keys), part(shape.tokens))};
}

/// Returns true if SDPA needs a mask. Its causal flag serves square, full-length inputs; a single full-length query
/// sees all keys and needs neither.
bool needs_mask(const AttentionShape& shape) {
  return shape.lengths != "full" || (shape.tokens != shape.keys && shape.tokens > 1);
}

/// Checks that memory holds the tensors of one call, including SDPA's mask, and the data that decoding cycles through.
void check_fits(const AttentionShape& s, const AttentionBench& bench, torch::ScalarType type) {
  const double queries = static_cast<double>(s.batch * s.heads) * static_cast<double>(s.tokens * s.head_dim);
  const double keys = static_cast<double>(s.batch * s.kv_heads) * static_cast<double>(s.keys * s.head_dim);
  const double copies = bench.pass == "forward_backward" ? 2 : 1;
  const double mask = needs_mask(s) ? static_cast<double>(s.batch) * static_cast<double>(s.tokens * s.keys) : 0;
  const double calls = copies * (2 * queries + 2 * keys) * static_cast<double>(c10::elementSize(type)) + mask;
  const double needed = calls + (bench.pass == "decode" ? static_cast<double>(bench.decode_bytes) : 0);
  check_tensors_fit(needed, fmt::format("{} queries and {} keys", s.tokens, s.keys));
}

/// Visible pairs of query and key, summed over sequences and heads.
double visible_pairs(const AttentionShape& shape) {
  double pairs = 0;
  for (int64_t b = 0; b < shape.batch; ++b) {
    const auto [queries, keys] = lengths_of(shape, b);
    pairs +=
        static_cast<double>(queries) * (static_cast<double>(keys - queries) + (static_cast<double>(queries) + 1) / 2);
  }
  return pairs * static_cast<double>(shape.heads);
}

/// Random queries, keys and values. Keys and values are slices of one tensor, as in the decoder's fused product.
AttentionInput make_input(const AttentionShape& s, torch::ScalarType type, bool gradients) {
  const auto random = [&](int64_t rows, int64_t heads) {
    return torch::randn({s.batch, rows, heads, s.head_dim}).to(type);
  };
  const auto q_BTHD = random(s.tokens, s.heads), kv = random(s.keys, 2 * s.kv_heads);
  AttentionInput input;
  input.q_BTHD = q_BTHD.requires_grad_(gradients);
  input.kv.k_BGSD = kv.narrow(2, 0, s.kv_heads).transpose(1, 2).detach().requires_grad_(gradients);
  input.kv.v_BGSE = kv.narrow(2, s.kv_heads, s.kv_heads).transpose(1, 2).detach().requires_grad_(gradients);
  if (s.lengths == "full") return input;
  std::vector<int32_t> queries, keys;
  for (int64_t b = 0; b < s.batch; ++b) {
    queries.push_back(static_cast<int32_t>(lengths_of(s, b).first));
    keys.push_back(static_cast<int32_t>(lengths_of(s, b).second));
  }
  input.q_lengths_B = torch::tensor(queries, torch::kInt);
  input.kv_lengths_B = torch::tensor(keys, torch::kInt);
  return input;
}

/// Moves keys and values to memory like a KV cache's: contiguous, in huge pages.
AttentionInput as_cached(AttentionInput input) {
  for (auto* values : {&input.kv.k_BGSD, &input.kv.v_BGSE}) {
    auto moved = empty_in_huge_pages(values->numel(), values->scalar_type()).view(values->sizes());
    *values = moved.copy_(*values);
  }
  return input;
}

/// Calls SDPA as a user of LibTorch would: with the causal flag where it applies, else with a mask.
torch::Tensor call_sdpa(const AttentionInput& input, const std::optional<torch::Tensor>& mask, bool causal) {
  const bool grouped = input.kv.k_BGSD.size(1) != input.q_BTHD.size(2);
  return at::scaled_dot_product_attention(input.q_BTHD.transpose(1, 2), input.kv.k_BGSD, input.kv.v_BGSE, mask, 0.0,
                                          causal, std::nullopt, grouped);
}

void backward(const torch::Tensor& out, const AttentionInput& input, const torch::Tensor& gradient) {
  for (const auto& leaf : {input.q_BTHD, input.kv.k_BGSD, input.kv.v_BGSE}) leaf.mutable_grad().reset();
  out.backward(gradient);
}

AttentionTiming make_row(const AttentionShape& s, const AttentionBench& bench, const char* backend,
                         const Medians& medians) {
  AttentionTiming row;
  if (bench.pass == "decode") row.bench = "decode";
  row.pass = bench.pass;
  row.dtype = bench.dtype;
  row.batch = s.batch;
  row.heads = s.heads;
  row.kv_heads = s.kv_heads;
  row.tokens = s.tokens;
  row.keys = s.keys;
  row.head_dim = s.head_dim;
  row.lengths = s.lengths;
  row.backend = backend;
  row.prism_ms = medians.prism_ms;
  row.peer_ms = medians.peer_ms;
  row.ratio = medians.ratio();
  return row;
}

AttentionTiming bench_products(const AttentionShape& shape, const AttentionBench& bench, torch::ScalarType type) {
  const bool gradients = bench.pass == "forward_backward";
  const torch::AutoGradMode mode(gradients);
  const auto input = make_input(shape, type, gradients);
  const auto gradient = torch::randn({shape.batch, shape.tokens, shape.heads, shape.head_dim}).to(type);
  const auto mask = needs_mask(shape) ? visible_keys(input) : std::optional<torch::Tensor>();
  const auto ours = [&] {
    const auto out_BTHE = attend(input).out_BTHE;
    if (gradients) backward(out_BTHE, input, gradient);
  };
  const auto theirs = [&] {
    const auto out_BHTE = call_sdpa(input, mask, !mask && shape.tokens > 1);
    if (gradients) backward(out_BHTE, input, gradient.transpose(1, 2));
  };
  AttentionTiming row =
      make_row(shape, bench, backend_name(choose_backend(input)), take_turns(ours, theirs, bench.rounds));
  const double flops = visible_pairs(shape) * static_cast<double>(shape.head_dim) * (gradients ? 14 : 4);
  row.peak_share = share_of_peak(flops / (row.prism_ms * 1e-3), bench.threads, type);
  return row;
}

AttentionTiming bench_decode(const AttentionShape& shape, const AttentionBench& bench, torch::ScalarType type) {
  const torch::NoGradGuard no_gradients;
  const int64_t call_bytes =
      2 * shape.batch * shape.kv_heads * shape.keys * shape.head_dim * static_cast<int64_t>(c10::elementSize(type));
  std::vector<AttentionInput> inputs;
  constexpr size_t kMostInputs = 4096;  // limits tiny calls, whose few keys stay in the CPU cache anyway
  for (int64_t bytes = 0; (bytes < bench.decode_bytes || inputs.size() < 2) && inputs.size() < kMostInputs;
       bytes += call_bytes)
    inputs.push_back(as_cached(make_input(shape, type, false)));
  const auto mask = needs_mask(shape) ? visible_keys(inputs[0]) : std::optional<torch::Tensor>();
  const bool causal = !mask && shape.tokens > 1;
  // A round is one pass over all inputs, so every call reads its keys and values from memory, not from a cache.
  const auto ours = [&] {
    for (const auto& input : inputs) attend(input);
  };
  const auto theirs = [&] {
    for (const auto& input : inputs) call_sdpa(input, mask, causal);
  };
  const auto reading = [&] {
    for (const auto& input : inputs)
      for (const auto& tensor : {input.kv.k_BGSD, input.kv.v_BGSE})
        read_through(tensor.data_ptr(), static_cast<int64_t>(tensor.nbytes()), bench.threads);
  };
  auto medians = take_turns(ours, theirs, bench.rounds, reading);
  for (double* ms : {&medians.prism_ms, &medians.peer_ms, &medians.limit_ms}) *ms /= static_cast<double>(inputs.size());
  AttentionTiming row = make_row(shape, bench, backend_name(choose_backend(inputs[0])), medians);
  row.peak_share = medians.limit_ms / medians.prism_ms;
  return row;
}

}  // namespace

AttentionShape check_attention_bench(const AttentionShape& given, const AttentionBench& bench) {
  PRISM_CHECK(bench.pass == "forward" || bench.pass == "forward_backward" || bench.pass == "decode", "bench",
              "expected the pass forward, forward_backward or decode; found \"{}\"; choose one of them.", bench.pass);
  AttentionShape shape = checked(given);
  check_fits(shape, bench, find_compute_type(bench.dtype));
  return shape;
}

AttentionTiming bench_attention(const AttentionShape& given, const AttentionBench& bench) {
  const AttentionShape shape = check_attention_bench(given, bench);
  const auto type = find_compute_type(bench.dtype);
  torch::manual_seed(1);
  return bench.pass == "decode" ? bench_decode(shape, bench, type) : bench_products(shape, bench, type);
}

}  // namespace prism
