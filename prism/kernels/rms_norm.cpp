#include "prism/kernels/rms_norm.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "prism/core/error.h"
#include "prism/kernels/row_kernels.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Rows whose gain gradients are summed into one partial sum. The order of summation is thus independent of the number
/// of threads.
constexpr int64_t kRowsPerNormTask = 64;

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  /// Returns {normed}, or {normed, sum} if there is a branch.
  static variable_list forward(AutogradContext* context, const Variable& x_given,
                               const std::optional<Variable>& branch_given, const Variable& weight, double eps,
                               torch::ScalarType out) {
    RECORD_FUNCTION("prism::add_rms_norm", {});
    const auto x = x_given.contiguous();
    const auto branch = branch_given ? branch_given->contiguous() : Tensor();
    const int64_t width = x.size(-1), rows = x.numel() / width;
    const auto normed = torch::empty(x.sizes(), x.options().dtype(out));
    const auto inverse_rms = torch::empty({rows}, x.options());
    const auto sum = branch.defined() ? torch::empty_like(x) : x;
    rows::Norm work;
    work.type = row_type(out);
    work.width = width;
    work.eps = static_cast<float>(eps);
    work.x = x.const_data_ptr<float>();
    work.weight = weight.const_data_ptr<float>();
    work.inverse_rms = inverse_rms.mutable_data_ptr<float>();
    work.y = normed.mutable_data_ptr();
    if (branch.defined()) {
      work.branch = branch.const_data_ptr();
      work.sum = sum.mutable_data_ptr<float>();
    }
    for_rows(found_again(row_kernels(x, out)).norm, work, rows, width);
    context->save_for_backward({sum, weight, inverse_rms});
    context->saved_data["out"] = static_cast<int64_t>(out);
    context->set_materialize_grads(false);
    return branch.defined() ? variable_list{normed, sum} : variable_list{normed};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::add_rms_norm_backward", {});
    const auto saved = context->get_saved_variables();
    const auto &sum = saved[0], &weight = saved[1], &inverse_rms = saved[2];
    const auto out = static_cast<torch::ScalarType>(context->saved_data["out"].toInt());
    const bool with_branch = gradients.size() > 1;
    const int64_t width = sum.size(-1), rows = sum.numel() / width;
    const auto d_y =
        gradients[0].defined() ? gradients[0].contiguous() : torch::zeros(sum.sizes(), sum.options().dtype(out));
    const auto d_sum = with_branch && gradients[1].defined() ? gradients[1].contiguous() : Tensor();
    const auto d_x = torch::empty_like(sum);
    const auto d_branch = with_branch ? torch::empty_like(d_y) : Tensor();
    const auto d_weight = torch::zeros({(rows + kRowsPerNormTask - 1) / kRowsPerNormTask, width}, sum.options());
    rows::NormGradient work;
    work.type = row_type(out);
    work.width = width;
    work.sum = sum.const_data_ptr<float>();
    work.weight = weight.const_data_ptr<float>();
    work.inverse_rms = inverse_rms.const_data_ptr<float>();
    work.d_y = d_y.const_data_ptr();
    work.d_sum = d_sum.defined() ? d_sum.const_data_ptr<float>() : nullptr;
    work.d_x = d_x.mutable_data_ptr<float>();
    work.d_branch = with_branch ? d_branch.mutable_data_ptr() : nullptr;
    const auto& kernels = found_again(row_kernels(sum, out));
    at::parallel_for(0, d_weight.size(0), 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        auto share = work;
        share.d_weight = d_weight.mutable_data_ptr<float>() + block * width;
        kernels.norm_gradient(share, block * kRowsPerNormTask, std::min(rows, (block + 1) * kRowsPerNormTask));
      }
    });
    return {d_x, d_branch, d_weight.sum(0), Tensor(), Tensor()};
  }
};

}  // namespace

NormedSum add_rms_norm(const Tensor& x, const Tensor& branch, const Tensor& weight, double eps, torch::ScalarType out) {
  const auto type = x.scalar_type();
  PRISM_CHECK((type == torch::kFloat && (out == torch::kFloat || out == torch::kBFloat16)) ||
                  (type == torch::kDouble && out == type),
              "rms_norm", "expected float32 to float32 or bfloat16, or float64 to float64; found {} to {}; convert x.",
              c10::toString(type), c10::toString(out));
  PRISM_CHECK(weight.dim() == 1 && x.dim() >= 1 && weight.size(0) == x.size(-1) && weight.scalar_type() == type,
              "rms_norm",
              "expected a gain of width {} and x's dtype; found width {} {}; pass the gain of these features.",
              x.size(-1), weight.numel(), c10::toString(weight.scalar_type()));
  PRISM_CHECK(!branch.defined() || (branch.sizes() == x.sizes() && branch.scalar_type() == out), "rms_norm",
              "expected a branch of x's shape {} in {}; found {} in {}; add tensors of one shape and dtype.",
              c10::str(x.sizes()), c10::toString(out), c10::str(branch.sizes()), c10::toString(branch.scalar_type()));
  if (x.numel() == 0 || type != torch::kFloat || row_kernels(x, out) == nullptr)
    return add_rms_norm_plain(x, branch, weight, eps, out);
  const auto branch_given = branch.defined() ? std::optional(branch) : std::nullopt;
  const auto results = RmsNormFunction::apply(x, branch_given, weight.contiguous(), eps, out);
  return {branch.defined() ? results[1] : x, results[0]};
}

NormedSum add_rms_norm_plain(const Tensor& x, const Tensor& branch, const Tensor& weight, double eps,
                             torch::ScalarType out) {
  const auto sum = branch.defined() ? x + branch : x;
  return {sum, (sum * torch::rsqrt(sum.square().mean(-1, /*keepdim=*/true) + eps) * weight).to(out)};
}

}  // namespace prism
