#include "prism/kernels/norm.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "prism/core/error.h"
#include "prism/kernels/row_kernels.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Rows whose weight gradients are summed into one partial sum. The order of summation is thus independent of the
/// number of threads.
constexpr int64_t kRowsPerNormTask = 64;

const float* values_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr<float>() : nullptr;
}

std::optional<Variable> if_defined(const Tensor& tensor) {
  return tensor.defined() ? std::optional<Variable>(tensor) : std::nullopt;
}

/// The settings besides tensors that the backward pass needs.
struct NormWork : torch::CustomClassHolder {
  bool is_layer = false, is_post = false, has_branch = false;
  float eps = 0;
  torch::ScalarType out = torch::kFloat;
  /// Returns true if the stream is a result of its own, neither x nor the norm in x's dtype.
  bool has_stream() const { return is_post ? out != torch::kFloat : has_branch; }
};

/// What the forward pass computes.
struct NormResults {
  Tensor normed, sum;
  Tensor unrounded;      ///< the norm in float32; undefined unless the stream is that
  Tensor inverse, mean;  ///< for the backward pass
  const Tensor& stream(const NormWork& settings) const { return settings.is_post ? unrounded : sum; }
};

/// @param keeps  the backward pass needs the inverse.
NormResults compute_norm(const Tensor& x_given, const Tensor& branch_given, const Tensor& weight, const Tensor& bias,
                         const NormWork& settings, bool keeps) {
  RECORD_FUNCTION("prism::add_norm", {});
  const auto x = x_given.contiguous();
  const auto branch = branch_given.defined() ? branch_given.contiguous() : Tensor();
  const int64_t width = x.size(-1), rows = x.numel() / width;
  NormResults results;
  results.normed = at::empty(x.sizes(), x.options().dtype(settings.out));
  if (keeps) results.inverse = at::empty({rows}, x.options());
  if (settings.is_layer) results.mean = at::empty({rows}, x.options());
  results.sum = branch.defined() ? at::empty(x.sizes(), x.options()) : x;
  if (settings.is_post && settings.has_stream()) results.unrounded = at::empty(x.sizes(), x.options());
  const auto values_of = [](const Tensor& tensor) {
    return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
  };
  rows::Norm work;
  work.type = row_type(settings.out);
  work.width = width;
  work.eps = settings.eps;
  work.x = x.const_data_ptr<float>();
  work.weight = weight.const_data_ptr<float>();
  work.bias = values_or_null(bias);
  work.inverse = values_of(results.inverse);
  work.mean = values_of(results.mean);
  work.y = results.normed.mutable_data_ptr();
  work.unrounded = values_of(results.unrounded);
  if (branch.defined()) {
    work.branch = branch.const_data_ptr();
    work.sum = values_of(results.sum);
  }
  for_rows(found_again(row_kernels(x, settings.out)).norm, work, rows, width);
  return results;
}

struct NormFunction : torch::autograd::Function<NormFunction> {
  /// Returns {normed}, or {normed, stream} if the stream is a result of its own.
  static variable_list forward(AutogradContext* context, const Variable& x, const std::optional<Variable>& branch,
                               const Variable& weight, const std::optional<Variable>& bias,
                               const c10::intrusive_ptr<NormWork>& settings) {
    const auto results = compute_norm(x, branch.value_or(Tensor()), weight, bias.value_or(Tensor()), *settings, true);
    context->save_for_backward({results.sum, weight, results.inverse, results.mean, bias.value_or(Tensor())});
    context->saved_data["settings"] = c10::IValue::make_capsule(settings);
    context->set_materialize_grads(false);
    if (!settings->has_stream()) return {results.normed};
    return {results.normed, results.stream(*settings)};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::add_norm_backward", {});
    const auto saved = context->get_saved_variables();
    const auto &sum = saved[0], &weight = saved[1], &inverse = saved[2], &mean = saved[3], &bias = saved[4];
    const auto settings = c10::static_intrusive_pointer_cast<NormWork>(context->saved_data["settings"].toCapsule());
    const int64_t width = sum.size(-1), rows = sum.numel() / width;
    const auto d_y = gradients[0].defined() ? gradients[0].contiguous()
                                            : torch::zeros(sum.sizes(), sum.options().dtype(settings->out));
    const auto d_stream = gradients.size() > 1 && gradients[1].defined() ? gradients[1].contiguous() : Tensor();
    const auto d_x = torch::empty_like(sum);
    const auto d_branch = settings->has_branch ? torch::empty_like(d_y) : Tensor();
    const auto partial_sums = [&] {
      return torch::zeros({(rows + kRowsPerNormTask - 1) / kRowsPerNormTask, width}, sum.options());
    };
    const auto d_weight = partial_sums(), d_bias = bias.defined() ? partial_sums() : Tensor();
    rows::NormGradient work;
    work.type = row_type(settings->out);
    work.width = width;
    work.sum = sum.const_data_ptr<float>();
    work.weight = weight.const_data_ptr<float>();
    work.inverse = inverse.const_data_ptr<float>();
    work.mean = values_or_null(mean);
    work.d_y = d_y.const_data_ptr();
    (settings->is_post ? work.d_unrounded : work.d_sum) = values_or_null(d_stream);
    work.d_x = d_x.mutable_data_ptr<float>();
    work.d_branch = settings->has_branch ? d_branch.mutable_data_ptr() : nullptr;
    const auto& kernels = found_again(row_kernels(sum, settings->out));
    at::parallel_for(0, d_weight.size(0), 1, [&](int64_t first, int64_t last) {
      for (int64_t block = first; block < last; ++block) {
        auto share = work;
        share.d_weight = d_weight.mutable_data_ptr<float>() + block * width;
        if (d_bias.defined()) share.d_bias = d_bias.mutable_data_ptr<float>() + block * width;
        kernels.norm_gradient(share, block * kRowsPerNormTask, std::min(rows, (block + 1) * kRowsPerNormTask));
      }
    });
    return {d_x, d_branch, d_weight.sum(0), d_bias.defined() ? d_bias.sum(0) : Tensor(), Tensor()};
  }
};

void check_norm(const Tensor& x, const Tensor& branch, const NormSettings& norm, torch::ScalarType out) {
  const auto type = x.scalar_type();
  PRISM_CHECK((type == torch::kFloat && (out == torch::kFloat || out == torch::kBFloat16)) ||
                  (type == torch::kDouble && out == type),
              "norm", "expected float32 to float32 or bfloat16, or float64 to float64; found {} to {}; convert x.",
              c10::toString(type), c10::toString(out));
  for (const auto* weights : {&norm.weight, &norm.bias}) {
    if (!weights->defined() && weights == &norm.bias) continue;
    PRISM_CHECK(weights->defined() && x.dim() >= 1 && weights->dim() == 1 && weights->size(0) == x.size(-1) &&
                    weights->scalar_type() == type,
                "norm", "expected weights of shape [{}] in {}; found {}; pass a weight for each feature.",
                x.dim() == 0 ? 0 : x.size(-1), c10::toString(type),
                weights->defined()
                    ? fmt::format("{} in {}", c10::str(weights->sizes()), c10::toString(weights->scalar_type()))
                    : "none");
  }
  PRISM_CHECK(!branch.defined() || (branch.sizes() == x.sizes() && branch.scalar_type() == out), "norm",
              "expected a branch of x's shape {} in {}; found {} in {}; add tensors of one shape and dtype.",
              c10::str(x.sizes()), c10::toString(out), c10::str(branch.sizes()), c10::toString(branch.scalar_type()));
}

}  // namespace

NormedSum add_norm(const Tensor& x, const Tensor& branch, const NormSettings& norm, torch::ScalarType out) {
  check_norm(x, branch, norm, out);
  if (x.numel() == 0 || x.scalar_type() != torch::kFloat || row_kernels(x, out) == nullptr)
    return add_norm_plain(x, branch, norm, out);
  NormWork settings;
  settings.is_layer = norm.kind == NormKind::layer;
  settings.is_post = norm.is_post;
  settings.has_branch = branch.defined();
  settings.eps = static_cast<float>(norm.eps);
  settings.out = out;
  const auto weight = norm.weight.contiguous(), bias = norm.bias.defined() ? norm.bias.contiguous() : Tensor();
  Tensor normed, stream;
  if (is_recorded({&x, &branch, &weight, &bias})) {
    const auto results =
        NormFunction::apply(x, if_defined(branch), weight, if_defined(bias), c10::make_intrusive<NormWork>(settings));
    normed = results[0];
    if (settings.has_stream()) stream = results[1];
  } else {
    const auto results = compute_norm(x, branch, weight, bias, settings, /*keeps=*/false);
    normed = results.normed;
    if (settings.has_stream()) stream = results.stream(settings);
  }
  if (settings.has_stream()) return {stream, normed};
  return {norm.is_post ? normed : x, normed};
}

NormedSum add_norm_plain(const Tensor& x, const Tensor& branch, const NormSettings& norm, torch::ScalarType out) {
  const auto sum = branch.defined() ? x + branch : x;
  const std::vector<int64_t> width = {sum.size(-1)};
  auto y = norm.kind == NormKind::layer ? at::layer_norm(sum, width, norm.weight, norm.bias, norm.eps)
                                        : at::rms_norm(sum, width, norm.weight, norm.eps);
  if (norm.kind == NormKind::rms && norm.bias.defined()) y = y + norm.bias;
  return {norm.is_post ? y : sum, y.to(out)};
}

}  // namespace prism
