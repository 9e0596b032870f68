// Computes logits in chunks of at most 256 MiB. The row kernels overwrite a chunk with its gradient.
#include "prism/kernels/cross_entropy.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "prism/core/error.h"
#include "prism/kernels/matmul.h"
#include "prism/kernels/row_kernels.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr int64_t kChunkBytes = int64_t{256} << 20;

/// Calls `work(first row, number of rows)` for every chunk. All chunks but the last have the same length.
template <class Work>
void for_each_chunk(int64_t rows, int64_t row_bytes, Work work) {
  const int64_t most = std::max<int64_t>(16, kChunkBytes / row_bytes / 16 * 16), chunks = (rows + most - 1) / most;
  const int64_t step = chunks == 0 ? 0 : ((rows + chunks - 1) / chunks + 15) / 16 * 16;
  for (int64_t first = 0; first < rows; first += step) work(first, std::min(step, rows - first));
}

int64_t row_bytes(const Tensor& cast) {
  return cast.size(0) * static_cast<int64_t>(cast.element_size());
}

torch::ScalarType wide_type(const Tensor& hidden) {
  return hidden.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
}

/// rows::CrossEntropy with elementary tensor operations.
Tensor plain_losses(const Tensor& logits_given, const Tensor& labels, std::optional<double> share, double lse_weight) {
  auto logits = logits_given.to(wide_type(logits_given), /*non_blocking=*/false, /*copy=*/true);
  const auto counted = labels.ge(0);
  const auto indices = labels.clamp_min(0).unsqueeze(1);
  const auto picked = logits.gather(1, indices).squeeze(1);
  const auto highest = logits.amax(1, /*keepdim=*/true);
  logits.sub_(highest).exp_();
  const auto sum = logits.sum(1, /*keepdim=*/true);
  const auto lse = highest + sum.log();
  if (share) {
    logits.mul_((1 + 2 * lse_weight * lse) / sum)
        .scatter_add_(1, indices, torch::full({labels.size(0), 1}, -1.0, logits.options()));
    logits_given.copy_(logits.mul_(*share).masked_fill_(counted.logical_not().unsqueeze(1), 0));
  }
  return torch::where(counted, (lse + lse_weight * lse.square()).squeeze(1) - picked, 0.0);
}

/// The losses of the rows of `logits`. If `share` is given, overwrites the logits with their gradient times `share`.
Tensor losses_of(const Tensor& logits, const Tensor& labels, std::optional<double> share, double lse_weight) {
  const auto* kernels = row_kernels(logits, logits.scalar_type());
  if (kernels == nullptr) return plain_losses(logits, labels, share, lse_weight);
  auto losses = torch::empty({logits.size(0)}, logits.options().dtype(torch::kFloat));
  rows::CrossEntropy work;
  work.type = row_type(logits.scalar_type());
  work.classes = logits.size(1);
  work.logits = logits.mutable_data_ptr();
  work.labels = labels.const_data_ptr<int64_t>();
  work.losses = losses.mutable_data_ptr<float>();
  work.gradient = share.has_value();
  work.share = static_cast<float>(share.value_or(1));
  work.lse_weight = static_cast<float>(lse_weight);
  for_rows(kernels->cross_entropy, work, logits.size(0), logits.size(1));
  return losses;
}

struct HeadCrossEntropyFunction : torch::autograd::Function<HeadCrossEntropyFunction> {
  static Variable forward(AutogradContext* context, const Variable& hidden, const Variable& weight, const Tensor& cast,
                          const Tensor& labels, double lse_weight) {
    RECORD_FUNCTION("prism::head_cross_entropy", {});
    const bool want_hidden = hidden.requires_grad(), want_weight = weight.requires_grad();
    const bool want_gradients = want_hidden || want_weight;
    const auto count = labels.ge(0).sum().item<int64_t>();
    const double share = count > 0 ? 1.0 / static_cast<double>(count) : 0.0;
    auto total = torch::zeros({}, hidden.options().dtype(wide_type(hidden)));
    Tensor dhidden, dweight;
    if (want_hidden) dhidden = torch::empty_like(hidden);
    if (want_weight) dweight = torch::empty(weight.sizes(), total.options());
    for_each_chunk(hidden.size(0), row_bytes(cast), [&](int64_t first, int64_t rows) {
      const auto rows_hidden = hidden.narrow(0, first, rows);
      const auto logits = matmul(rows_hidden, cast.t(), hidden.scalar_type());
      const auto wanted = want_gradients ? std::optional(share) : std::nullopt;
      total += losses_of(logits, labels.narrow(0, first, rows), wanted, lse_weight).sum();
      if (want_hidden) matmul_into(dhidden.narrow(0, first, rows), logits, cast);
      if (want_weight) matmul_into(dweight, logits.t(), rows_hidden, /*accumulate=*/first > 0);
    });
    if (want_weight && hidden.size(0) == 0) dweight.zero_();
    if (want_weight) dweight = dweight.to(weight.scalar_type());
    context->save_for_backward({dhidden, dweight});
    return total * share;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::head_cross_entropy_backward", {});
    const auto saved = context->get_saved_variables();
    // A double, not a tensor of hidden's dtype: 1/3 in bfloat16 would be off by 0.2% in every element.
    const double scale = gradients[0].item<double>();
    const auto scaled = [scale](const Tensor& x) { return x.defined() && scale != 1 ? x * scale : x; };
    return {scaled(saved[0]), scaled(saved[1]), Variable(), Variable(), Variable()};
  }
};

/// @throws InputError for inconsistent shapes, or labels outside the vocabulary.
void check(const char* operation, const Tensor& hidden, c10::IntArrayRef shape, const Tensor& labels) {
  PRISM_CHECK(
      hidden.dim() == 2 && labels.dim() == 1 && labels.size(0) == hidden.size(0) && shape[1] == hidden.size(1),
      operation,
      "expected hidden [N, d], weight [V, d] and labels [N]; found {} rows and {} labels; pass a label for each row.",
      hidden.size(0), labels.numel());
  PRISM_CHECK(labels.scalar_type() == torch::kLong, operation, "expected int64 labels; found {}; convert them.",
              c10::toString(labels.scalar_type()));
  if (labels.numel() == 0) return;
  const auto [lowest, highest] = labels.aminmax();
  PRISM_CHECK(
      lowest.item<int64_t>() >= -1 && highest.item<int64_t>() < shape[0], operation,
      "expected labels from 0 to {}, or -1; found {} to {}; compare the vocabularies of data and model, and use -1 "
      "for labels to ignore.",
      shape[0] - 1, lowest.item<int64_t>(), highest.item<int64_t>());
}

}  // namespace

Tensor head_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& cast, const Tensor& labels,
                          double lse_weight) {
  check("head_cross_entropy", hidden, cast.sizes(), labels);
  return HeadCrossEntropyFunction::apply(hidden, weight, cast, labels.contiguous(), lse_weight);
}

TokenScores head_token_scores(const Tensor& hidden, const std::vector<int64_t>& shape,
                              const std::function<Tensor(const Tensor&)>& product, const Tensor& labels_given,
                              bool with_top) {
  check("head_token_scores", hidden, shape, labels_given);
  torch::NoGradGuard no_gradients;
  TokenScores scores;
  scores.losses_N = torch::empty({hidden.size(0)}, hidden.options().dtype(wide_type(hidden)));
  if (with_top) scores.is_top_N = torch::empty({hidden.size(0)}, hidden.options().dtype(torch::kBool));
  const auto labels = labels_given.contiguous();
  const auto bytes = shape[0] * static_cast<int64_t>(sizeof(float));
  for_each_chunk(hidden.size(0), bytes, [&](int64_t first, int64_t rows) {
    const auto logits = product(hidden.narrow(0, first, rows));
    const auto labels_of_rows = labels.narrow(0, first, rows);
    if (with_top) {
      const auto own = logits.gather(1, labels_of_rows.clamp_min(0).unsqueeze(1)).squeeze(1);
      scores.is_top_N.narrow(0, first, rows).copy_(own.ge(logits.amax(1)).logical_and_(labels_of_rows.ge(0)));
    }
    scores.losses_N.narrow(0, first, rows).copy_(losses_of(logits, labels_of_rows, std::nullopt, 0));
  });
  return scores;
}

Tensor head_cross_entropy_plain(const Tensor& hidden, const Tensor& weight, const Tensor& labels, double lse_weight) {
  const auto logits = at::linear(hidden, weight).to(wide_type(hidden));
  const auto counted = labels.ge(0).to(logits.scalar_type());
  return at::cross_entropy_loss(logits, labels, {}, at::Reduction::Mean, -1) +
         lse_weight * (logits.logsumexp(1).square() * counted).sum() / counted.sum();
}

}  // namespace prism
