#include "prism/sparse/selector.h"

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"

namespace prism {
namespace {

void check_shapes(const SelectorInput& input) {
  const auto &q = input.q_BTHD, &k = input.k_BGSD;
  PRISM_CHECK(q.dim() == 4 && k.dim() == 4 && q.size(0) == k.size(0) && q.size(3) == k.size(3) && k.size(1) > 0 &&
                  q.size(2) % k.size(1) == 0,
              "selector",
              "expected q [B, T, H, D] and k [B, G, S, D] with H a multiple of G; found {} and {}; reshape them.",
              c10::str(q.sizes()), c10::str(k.sizes()));
  PRISM_CHECK(input.pairs.head_dim == q.size(3), "selector",
              "expected rotary pairs for heads of width {}; found width {}; make them for this width.", q.size(3),
              input.pairs.head_dim);
}

}  // namespace

void check_readable(const SelectorInput& input) {
  for (const auto& tensor : {input.q_BTHD, input.k_BGSD})
    PRISM_CHECK((tensor.scalar_type() == torch::kFloat || tensor.scalar_type() == torch::kBFloat16) &&
                    tensor.device().is_cpu() && tensor.stride(3) == 1,
                "selector",
                "expected float32 or bfloat16 on the CPU with a dense last axis; found {} on {}; convert and copy it.",
                tensor.dtype().name(), tensor.device().str());
}

void check_finite(bool is_finite, const char* what, int64_t head, int64_t b) {
  PRISM_CHECK(is_finite, "selector",
              "expected {} that are finite and whose sums fit float32; found other values in head {} of sequence {}; "
              "check what computes them.",
              what, head, b);
}

int64_t HeadBlocks::visible_blocks() const {
  int64_t sum = 0;
  for (int64_t row = 0; row < rows(); ++row) sum += visible(row);
  return sum;
}

double SelectorInput::score_scale() const {
  return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(q_BTHD.size(3)));
}

SelectorLengths::SelectorLengths(const SelectorInput& input) : prompt_length_(input.prompt_length) {
  check_shapes(input);
  const int64_t batch = input.q_BTHD.size(0);
  const auto read = [batch](const torch::Tensor& given, int64_t all, const char* name) {
    std::vector<int64_t> lengths(static_cast<size_t>(batch), all);
    if (!given.defined()) return lengths;
    PRISM_CHECK(given.dim() == 1 && given.size(0) == batch, "selector",
                "{}: expected [{}]; found {}; pass one for each sequence.", name, batch, c10::str(given.sizes()));
    for (int64_t b = 0; b < batch; ++b) {
      lengths[static_cast<size_t>(b)] = given[b].item<int64_t>();
      PRISM_CHECK(lengths[static_cast<size_t>(b)] >= 0 && lengths[static_cast<size_t>(b)] <= all, "selector",
                  "{}: expected lengths from 0 to {}; found {}; pass the number of valid tokens.", name, all,
                  lengths[static_cast<size_t>(b)]);
    }
    return lengths;
  };
  queries_ = read(input.q_lengths_B, input.q_BTHD.size(1), "q_lengths");
  keys_ = read(input.kv_lengths_B, input.k_BGSD.size(2), "kv_lengths");
  for (int64_t b = 0; b < batch; ++b)
    PRISM_CHECK(queries(b) <= keys(b), "selector",
                "expected a key for every query; found {} queries and {} keys; pass the keys of all tokens up to the "
                "last query.",
                queries(b), keys(b));
}

int64_t SelectorLengths::prompt_rows(int64_t b, int64_t query_block) const {
  return (std::max(prompt_length_, keys(b)) + query_block - 1) / query_block;
}

int64_t SelectorLengths::most_rows(int64_t query_block) const {
  int64_t most = 0;
  for (size_t b = 0; b < keys_.size(); ++b)
    most = std::max(most, blocks(static_cast<int64_t>(b), query_block, 1).rows());
  return most;
}

}  // namespace prism
