// v1: LibTorch operations on chunks of about 32 MiB of float32 logits.
#include "prism/kernels/cross_entropy.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/nn/functional/loss.h>

#include "prism/core/error.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr int64_t kChunkValues = int64_t{8} << 20;

int64_t chunk_rows(int64_t vocab_size) {
  return std::max<int64_t>(16, kChunkValues / vocab_size / 16 * 16);
}

/// Calls `work(first row, number of rows)` for every chunk.
template <class Work>
void for_each_chunk(int64_t rows, int64_t vocab_size, Work work) {
  const int64_t step = chunk_rows(vocab_size);
  for (int64_t first = 0; first < rows; first += step) work(first, std::min(step, rows - first));
}

torch::ScalarType wide_type(const Tensor& hidden) {
  return hidden.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
}

/// Losses of one chunk; `logits` becomes the softmax.
Tensor losses_and_softmax(Tensor& logits, const Tensor& labels) {
  const auto counted = labels.ge(0);
  const auto picked = logits.gather(1, labels.clamp_min(0).unsqueeze(1)).squeeze(1);
  const auto highest = logits.amax(1, /*keepdim=*/true);
  logits.sub_(highest).exp_();
  const auto sum = logits.sum(1, /*keepdim=*/true);
  logits.div_(sum);
  return torch::where(counted, (highest + sum.log()).squeeze(1) - picked, 0.0);
}

struct HeadCrossEntropyFunction : torch::autograd::Function<HeadCrossEntropyFunction> {
  static Variable forward(AutogradContext* context, const Variable& hidden, const Variable& weight, const Tensor& cast,
                          const Tensor& labels) {
    const bool want_gradients = hidden.requires_grad() || weight.requires_grad();
    const auto type = wide_type(hidden);
    const auto count = labels.ge(0).sum().item<int64_t>();
    const double share = count > 0 ? 1.0 / static_cast<double>(count) : 0.0;
    auto total = torch::zeros({}, hidden.options().dtype(type));
    Tensor dhidden, dweight;
    if (want_gradients) {
      dhidden = torch::empty_like(hidden);
      dweight = torch::zeros(weight.sizes(), weight.options().requires_grad(false));
    }
    for_each_chunk(hidden.size(0), cast.size(0), [&](int64_t first, int64_t rows) {
      const auto rows_hidden = hidden.narrow(0, first, rows);
      const auto rows_labels = labels.narrow(0, first, rows);
      auto logits = at::linear(rows_hidden, cast).to(type);
      total += losses_and_softmax(logits, rows_labels).sum();
      if (!want_gradients) return;
      // d loss / d logits = (softmax - one-hot) / count, zero in rows that do not count.
      const auto counted = rows_labels.ge(0).to(type).mul_(share);
      logits.scatter_add_(1, rows_labels.clamp_min(0).unsqueeze(1), torch::full({rows, 1}, -1.0, logits.options()));
      const auto dlogits = logits.mul_(counted.unsqueeze(1)).to(hidden.scalar_type());
      dhidden.narrow(0, first, rows).copy_(at::mm(dlogits, cast));
      dweight += at::mm(dlogits.t(), rows_hidden);
    });
    context->save_for_backward({dhidden, dweight});
    return total * share;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    // A number, not a tensor of hidden's dtype: 1/3 in bfloat16 would be off by 0.2% every time.
    const double scale = gradients[0].item<double>();
    return {saved[0] * scale, saved[1].mul_(scale), Variable(), Variable()};
  }
};

}  // namespace

Tensor head_cross_entropy(const Tensor& hidden, const Tensor& weight, const Tensor& cast, const Tensor& labels) {
  PRISM_CHECK(
      hidden.dim() == 2 && labels.dim() == 1 && labels.size(0) == hidden.size(0) && cast.size(1) == hidden.size(1),
      "head_cross_entropy", "expected hidden [N, d], weight [V, d] and labels [N]; found {} rows and {} labels.",
      hidden.size(0), labels.numel());
  return HeadCrossEntropyFunction::apply(hidden, weight, cast, labels);
}

Tensor head_token_losses(const Tensor& hidden, const Tensor& cast, const Tensor& labels) {
  torch::NoGradGuard no_gradients;
  auto losses = torch::empty({hidden.size(0)}, hidden.options().dtype(wide_type(hidden)));
  for_each_chunk(hidden.size(0), cast.size(0), [&](int64_t first, int64_t rows) {
    auto logits = at::linear(hidden.narrow(0, first, rows), cast).to(wide_type(hidden));
    losses.narrow(0, first, rows).copy_(losses_and_softmax(logits, labels.narrow(0, first, rows)));
  });
  return losses;
}

Tensor head_cross_entropy_plain(const Tensor& hidden, const Tensor& weight, const Tensor& labels) {
  return at::cross_entropy_loss(at::linear(hidden, weight).to(wide_type(hidden)), labels, {}, at::Reduction::Mean, -1);
}

}  // namespace prism
