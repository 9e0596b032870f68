#include "prism/layers/pooling.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "prism/kernels/row_kernels.h"

namespace prism {
namespace {

using torch::Tensor;

/// Means on the CPU. No copy of x in another dtype is made, and padding is not read.
Tensor means_of(const rows::Kernels& kernels, const Tensor& x_BTD, const Tensor& lengths_B) {
  const auto x = x_BTD.contiguous();
  const int64_t tokens = x.size(1), width = x.size(2);
  const auto lengths = lengths_B.defined() ? lengths_B.to(torch::kCPU, torch::kLong).contiguous() : Tensor();
  auto mean_BD = at::zeros({x.size(0), width}, x.options().dtype(torch::kFloat));
  const auto* values = static_cast<const std::byte*>(x.const_data_ptr());
  auto* means = mean_BD.mutable_data_ptr<float>();
  constexpr int64_t kColumns = 128;  // of a thread's share, so that a single text occupies all threads
  const int64_t shares = (width + kColumns - 1) / kColumns;
  at::parallel_for(0, x.size(0) * shares, 1, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const int64_t b = i / shares, column = i % shares * kColumns;
      const int64_t length = lengths.defined() ? std::min(tokens, lengths.const_data_ptr<int64_t>()[b]) : tokens;
      rows::ColumnSums share;
      share.type = row_type(x.scalar_type());
      share.width = std::min(kColumns, width - column);
      share.stride = width;
      share.x = values + (b * tokens * width + column) * x.element_size();
      share.sums = means + b * width + column;
      kernels.add(share, 0, length);
      const auto divisor = static_cast<float>(std::max<int64_t>(1, length));
      for (int64_t d = 0; d < share.width; ++d) share.sums[d] /= divisor;
    }
  });
  return mean_BD;
}

/// The kernels for means in float32, or null.
const rows::Kernels* kernels_for(const Tensor& x_BTD) {
  return row_kernels(x_BTD, x_BTD.scalar_type());
}

/// True at the positions of padding, [B, T, 1].
Tensor padding_of(const Tensor& x_BTD, const Tensor& lengths_B) {
  const auto lengths_B1 = lengths_B.to(x_BTD.device()).unsqueeze(1);
  return (at::arange(x_BTD.size(1), lengths_B1.options()) >= lengths_B1).unsqueeze(2);
}

/// The same bits with gradients as without, so that layers that are recomputed decide twice alike.
struct MeanFunction : torch::autograd::Function<MeanFunction> {
  static torch::autograd::Variable forward(torch::autograd::AutogradContext* context,
                                           const torch::autograd::Variable& x, const std::optional<Tensor>& lengths) {
    context->save_for_backward({x, lengths.value_or(Tensor())});
    return means_of(*kernels_for(x), x, lengths.value_or(Tensor()));
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x_BTD = saved[0], &lengths_B = saved[1];
    if (!lengths_B.defined())
      return {(gradients[0] / x_BTD.size(1)).to(x_BTD.scalar_type()).unsqueeze(1).expand_as(x_BTD), Tensor()};
    const auto share_BD = gradients[0] / lengths_B.unsqueeze(1).clamp_min(1).to(gradients[0].scalar_type());
    const auto each_BTD = share_BD.to(x_BTD.scalar_type()).unsqueeze(1).expand_as(x_BTD);
    return {each_BTD.masked_fill(padding_of(x_BTD, lengths_B), 0), Tensor()};
  }
};

}  // namespace

Tensor mean_of_rows(const Tensor& x_BTD, const Tensor& lengths_B, torch::ScalarType type) {
  if (type == torch::kFloat && kernels_for(x_BTD) != nullptr)
    return MeanFunction::apply(x_BTD, lengths_B.defined() ? std::optional(lengths_B) : std::nullopt);
  if (!lengths_B.defined()) return x_BTD.mean(1, /*keepdim=*/false, type);
  // Padding is replaced, since NaN times 0 is NaN.
  const auto sum_BD = x_BTD.masked_fill(padding_of(x_BTD, lengths_B), 0).sum(1, /*keepdim=*/false, type);
  return sum_BD / lengths_B.to(x_BTD.device()).unsqueeze(1).clamp_min(1).to(type);
}

}  // namespace prism
