#include "prism/kernels/glu.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <type_traits>

#include "prism/core/error.h"
#include "prism/kernels/row_kernels.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// A pointer to the values from column `first` on.
template <class Pointer>
Pointer from_column(Pointer values, int64_t first, const Tensor& tensor) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  return static_cast<Byte*>(values) + first * static_cast<int64_t>(tensor.element_size());
}

/// @param gates, up  contiguous; `up` may be undefined.
rows::Glu work_of(GluKind kind, const Tensor& gates, const Tensor& up) {
  const int64_t parts = gate_parts(kind);
  rows::Glu work;
  work.type = row_type(gates.scalar_type());
  work.width = gates.size(-1) / (up.defined() ? parts : parts + 1);
  work.gate_stride = gates.size(-1);
  work.up_stride = up.defined() ? up.size(-1) : gates.size(-1);
  work.gate = gates.const_data_ptr();
  if (parts == 2) work.inner = from_column(work.gate, work.width, gates);
  work.up = up.defined() ? up.const_data_ptr() : from_column(work.gate, parts * work.width, gates);
  return work;
}

/// @param gates, up  contiguous; `up` may be undefined.
Tensor compute_glu(GluKind kind, const Tensor& gates, const Tensor& up) {
  RECORD_FUNCTION("prism::glu", {});
  auto work = work_of(kind, gates, up);
  auto shape = gates.sizes().vec();
  shape.back() = work.width;
  auto y = at::empty(shape, gates.options());
  work.y = y.mutable_data_ptr();
  for_rows(found_again(row_kernels(gates, gates.scalar_type())).glu, work, y.numel() / work.width, work.width);
  return y;
}

struct GluFunction : torch::autograd::Function<GluFunction> {
  static Variable forward(AutogradContext* context, const Variable& gates_given,
                          const std::optional<Variable>& up_given, GluKind kind) {
    const auto gates = gates_given.contiguous(), up = up_given ? up_given->contiguous() : Tensor();
    context->save_for_backward({gates, up});
    context->saved_data["kind"] = static_cast<int64_t>(kind);
    return compute_glu(kind, gates, up);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::glu_backward", {});
    const auto saved = context->get_saved_variables();
    const auto &gates = saved[0], &up = saved[1];
    const auto kind = static_cast<GluKind>(context->saved_data["kind"].toInt());
    const auto d_y = gradients[0].contiguous();
    const auto d_gates = torch::empty_like(gates), d_up = up.defined() ? torch::empty_like(up) : Tensor();
    rows::GluGradient work{work_of(kind, gates, up)};
    work.d_y = d_y.const_data_ptr();
    work.d_gate = d_gates.mutable_data_ptr();
    const int64_t parts = gate_parts(kind), width = work.width;
    if (parts == 2) work.d_inner = from_column(work.d_gate, width, gates);
    work.d_up = up.defined() ? d_up.mutable_data_ptr() : from_column(work.d_gate, parts * width, gates);
    for_rows(found_again(row_kernels(gates, gates.scalar_type())).glu_gradient, work, d_y.numel() / width, width);
    return {d_gates, d_up, {}};
  }
};

void check_shapes(GluKind kind, const Tensor& gates, const Tensor& up) {
  const int64_t parts = gate_parts(kind);
  if (!up.defined()) {
    PRISM_CHECK(
        gates.dim() >= 1 && gates.size(-1) % (parts + 1) == 0, "glu",
        "expected {} projections of one width beside each other; found width {}; join projections of one width.",
        parts + 1, gates.dim() == 0 ? 0 : gates.size(-1));
    return;
  }
  auto expected = up.sizes().vec();
  if (!expected.empty()) expected.back() *= parts;
  PRISM_CHECK(
      up.dim() >= 1 && gates.sizes() == at::IntArrayRef(expected) && gates.scalar_type() == up.scalar_type(), "glu",
      "expected gates {} and up of one dtype; found gates {} {} and up {}; give projections of the same tokens.",
      fmt::join(expected, " x "), fmt::join(gates.sizes(), " x "), c10::toString(gates.scalar_type()),
      c10::toString(up.scalar_type()));
}

}  // namespace

int64_t gate_parts(GluKind kind) {
  return kind == GluKind::g2lu ? 2 : 1;
}

Tensor glu(GluKind kind, const Tensor& gates, const Tensor& up) {
  check_shapes(kind, gates, up);
  if (gates.numel() == 0 || row_kernels(gates, gates.scalar_type()) == nullptr) return glu_plain(kind, gates, up);
  if (!is_recorded({&gates, &up})) return compute_glu(kind, gates.contiguous(), up.defined() ? up.contiguous() : up);
  return GluFunction::apply(gates, up.defined() ? std::optional<Variable>(up) : std::nullopt, kind);
}

Tensor glu_plain(GluKind kind, const Tensor& gates, const Tensor& up) {
  const int64_t parts = gate_parts(kind), all = up.defined() ? parts : parts + 1;
  const auto pieces = gates.chunk(all, -1);
  const auto z = kind == GluKind::g2lu ? pieces[0] * torch::silu(pieces[1]) : pieces[0];
  return torch::silu(z) * (up.defined() ? up : pieces.back());
}

}  // namespace prism
