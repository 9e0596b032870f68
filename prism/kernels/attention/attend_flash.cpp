// The flash backend of attend(): turns the keys that each query sees into an interval and calls the kernels of the
// processor's instruction set.
#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "prism/kernels/attention/attend.h"
#include "prism/kernels/flash/flash.h"
#include "prism/kernels/memory/scratch.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// The keys [first, end) that each query sees if its head is kept, how the forward pass goes through them, and what it
/// multiplies the heads by. The
/// intervals are no tensors, because decoding finds them in every layer.
struct Visible : torch::CustomClassHolder {
  std::vector<int32_t> first_BT, end_BT;
  Tensor kept_BH;        ///< bool; undefined: all
  Tensor weights_BH;     ///< float32; undefined: 1
  BlockMask blocks;      ///< int32, dense; undefined: all
  Tensor first_query_B;  ///< int32; only with blocks
  double skip_share = 0;
  Tensor kv_lengths_B;  ///< int32, dense; undefined: all keys
  std::optional<bool> decodes;
};

/// @param lengths_B  int32, dense; undefined: `all`.
int32_t length_of(const Tensor& lengths_B, int64_t all, int64_t b) {
  return lengths_B.defined() ? lengths_B.const_data_ptr<int32_t>()[b] : static_cast<int32_t>(all);
}

Tensor dense(const Tensor& tensor) {
  return tensor.defined() ? tensor.contiguous() : tensor;
}

/// Sets the blocks that are kept. @param q_lengths_B  dense.
void set_blocks(const AttentionInput& input, const Tensor& q_lengths_B, Visible& seen) {
  const int64_t batch = input.q_BTHD.size(0), queries = input.q_BTHD.size(1), keys = input.kv.positions();
  const int64_t block = std::max<int64_t>(1, input.block_mask.key_block_size);
  seen.blocks = checked_block_mask(spread_to_heads(input.block_mask, input.q_BTHD.size(2)), (keys + block - 1) / block);
  seen.first_query_B = at::empty({batch}, torch::kInt);
  const int64_t rows = seen.blocks.counts_BHM.size(2);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = length_of(q_lengths_B, queries, b);
    const int64_t first =
        std::max<int64_t>(0, input.first_query.value_or(length_of(seen.kv_lengths_B, keys, b) - length));
    seen.first_query_B.mutable_data_ptr<int32_t>()[b] = static_cast<int32_t>(first);
    const int64_t last = first + std::max<int64_t>(0, length - 1);
    const int64_t needed = last / seen.blocks.query_block_size - first / seen.blocks.query_block_size + 1;
    PRISM_CHECK(needed <= rows, "block_mask",
                "expected rows for {} queries, {}; found {} rows of {}; pass a mask that was made for these queries.",
                last - first + 1, needed, rows, seen.blocks.query_block_size);
  }
}

/// Document ids are non-decreasing along the keys, so the visible keys of a query form one interval.
c10::intrusive_ptr<Visible> visible_to(const AttentionInput& input) {
  const int64_t batch = input.q_BTHD.size(0), queries = input.q_BTHD.size(1), keys = input.kv.positions();
  auto found = c10::make_intrusive<Visible>();
  Visible& seen = *found;
  seen.first_BT.resize(static_cast<size_t>(batch * queries));
  seen.end_BT.resize(seen.first_BT.size());
  seen.decodes = input.decodes;
  seen.kept_BH = dense(input.kept_heads_BH);
  if (input.head_weights_BH.defined()) seen.weights_BH = input.head_weights_BH.to(torch::kFloat).contiguous();
  seen.skip_share = input.skip_share;
  seen.kv_lengths_B = dense(input.kv_lengths_B);
  const bool causal = input.causality == Causality::causal;
  const Tensor q_lengths_B = dense(input.q_lengths_B);
  if (input.block_mask.defined()) set_blocks(input, q_lengths_B, seen);
  const Tensor documents = input.documents_BS.defined() ? input.documents_BS.to(torch::kInt).contiguous() : Tensor();
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t q_length = length_of(q_lengths_B, queries, b), kv_length = length_of(seen.kv_lengths_B, keys, b);
    int32_t* first = seen.first_BT.data() + b * queries;
    int32_t* end = seen.end_BT.data() + b * queries;
    const int32_t* document = documents.defined() ? documents.const_data_ptr<int32_t>() + b * keys : nullptr;
    for (int32_t t = 0; t < queries; ++t) {
      const int32_t position = t + kv_length - q_length;
      first[t] = input.window > 0 ? static_cast<int32_t>(std::max<int64_t>(0, position + 1 - input.window)) : 0;
      end[t] = t >= q_length ? 0 : causal ? std::clamp(position + 1, 0, kv_length) : kv_length;
      if (document == nullptr || end[t] == 0) continue;
      const int32_t own = document[std::clamp<int64_t>(position, 0, keys - 1)];
      first[t] =
          std::max(first[t], static_cast<int32_t>(std::lower_bound(document, document + end[t], own) - document));
      end[t] = static_cast<int32_t>(std::upper_bound(document + first[t], document + end[t], own) - document);
    }
  }
  return found;
}

/// @param head, row  the tensor's axes of heads and rows.
flash::Matrix matrix_of(const Tensor& tensor, int64_t head, int64_t row) {
  return {tensor.data_ptr(), tensor.stride(0), tensor.stride(head), tensor.stride(row)};
}

flash::Problem problem_of(const Tensor& q_BTHD, const Tensor& k_BGSD, const Tensor& v_BGSE, const Visible& seen,
                          double scale) {
  flash::Problem p;
  p.type = q_BTHD.scalar_type() == torch::kBFloat16 ? flash::Type::bfloat16 : flash::Type::float32;
  p.batch = q_BTHD.size(0);
  p.queries = q_BTHD.size(1);
  p.heads = q_BTHD.size(2);
  p.key_dim = q_BTHD.size(3);
  p.kv_heads = k_BGSD.size(1);
  p.keys = k_BGSD.size(2);
  p.value_dim = v_BGSE.size(3);
  p.scale = static_cast<float>(scale);
  p.first_key_BT = seen.first_BT.data();
  p.end_key_BT = seen.end_BT.data();
  p.kept_heads_BH = seen.kept_BH.defined() ? seen.kept_BH.const_data_ptr<bool>() : nullptr;
  if (seen.blocks.defined())
    p.blocks = {.counts_BHM = seen.blocks.counts_BHM.const_data_ptr<int32_t>(),
                .indices_BHMN = seen.blocks.indices_BHMN.const_data_ptr<int32_t>(),
                .rows = seen.blocks.indices_BHMN.size(2),
                .width = seen.blocks.indices_BHMN.size(3),
                .query_block = seen.blocks.query_block_size,
                .key_block = seen.blocks.key_block_size,
                .first_query_B = seen.first_query_B.const_data_ptr<int32_t>()};
  p.threads = kernel_threads();
  return p;
}

bool wants_gradients(const AttentionInput& input) {
  return at::GradMode::is_enabled() &&
         (input.q_BTHD.requires_grad() || input.kv.k_BGSD.requires_grad() || input.kv.v_BGSE.requires_grad() ||
          (input.head_weights_BH.defined() && input.head_weights_BH.requires_grad()));
}

/// Returns true if the kernels read the input's pages where they are.
bool reads_in_place(const AttentionInput& input) {
  return input.kv.is_paged() && input.kv.k_BGSD.size(2) % flash::kPageRows == 0 &&
         (input.q_BTHD.scalar_type() != torch::kHalf || input.kv.is_int8()) && !wants_gradients(input);
}

/// The longest sequence's keys, at least 1, so that unused entries of a page table make no work.
int64_t most_keys(const KeyValues& kv, const Tensor& kv_lengths_B) {
  if (!kv_lengths_B.defined()) return std::max<int64_t>(1, kv.positions());
  const int32_t* lengths = kv_lengths_B.const_data_ptr<int32_t>();
  return std::max<int64_t>(1, *std::max_element(lengths, lengths + kv_lengths_B.numel()));
}

AttentionOutput run_forward(const Tensor& q_BTHD, const KeyValues& kv, const Visible& seen, double scale) {
  RECORD_FUNCTION("prism::attend", {});
  flash::Forward f(problem_of(q_BTHD, kv.k_BGSD, kv.v_BGSE, seen, scale));
  f.decodes = seen.decodes;
  if (seen.weights_BH.defined()) f.weights_BH = seen.weights_BH.const_data_ptr<float>();
  Tensor table_BN;
  if (kv.is_paged()) {
    table_BN = kv.page_table_BN.contiguous();
    f.keys = most_keys(kv, seen.kv_lengths_B);
    f.pages = {table_BN.const_data_ptr<int32_t>(), table_BN.size(1), kv.k_BGSD.size(2)};
  }
  if (seen.kv_lengths_B.defined()) f.lengths_B = seen.kv_lengths_B.const_data_ptr<int32_t>();
  if (seen.skip_share > 0) f.skip_below = static_cast<float>(std::log(seen.skip_share) / scale);
  const Tensor out_BTHE = at::empty({f.batch, f.queries, f.heads, f.value_dim}, q_BTHD.scalar_type());
  const Tensor lse_BHT = at::empty({f.batch, f.heads, f.queries}, torch::kFloat);
  const auto& kernels = found_again(flash::kernels_of(current_isa()));
  Scratch scratch(kernels.forward_scratch(f));
  const auto tasks = flash::plan(f);
  f.q = matrix_of(q_BTHD, 2, 1);
  f.k = matrix_of(kv.k_BGSD, 1, 2);
  f.v = matrix_of(kv.v_BGSE, 1, 2);
  if (kv.is_int8()) {
    f.k_scales = matrix_of(kv.k_scales_PGS, 1, 2);
    f.v_scales = matrix_of(kv.v_scales_PGS, 1, 2);
  }
  f.out = matrix_of(out_BTHE, 2, 1);
  f.lse_BHT = lse_BHT.mutable_data_ptr<float>();
  f.scratch = scratch.data();
  f.tasks = tasks.data();
  f.task_count = static_cast<int64_t>(tasks.size());
  kernels.forward(f);
  return {out_BTHE, lse_BHT};
}

struct FlashFunction : torch::autograd::Function<FlashFunction> {
  static variable_list forward(AutogradContext* context, const Variable& q_BTHD, const Variable& k_BGSD,
                               const Variable& v_BGSE, const c10::intrusive_ptr<Visible>& seen, double scale) {
    const auto [out_BTHE, lse_BHT] = run_forward(q_BTHD, {k_BGSD, v_BGSE}, *seen, scale);
    context->save_for_backward({q_BTHD, k_BGSD, v_BGSE, out_BTHE, lse_BHT});
    context->saved_data["seen"] = c10::IValue::make_capsule(seen);
    context->saved_data["scale"] = scale;
    context->mark_non_differentiable({lse_BHT});
    return {out_BTHE, lse_BHT};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::attend_backward", {});
    const auto saved = context->get_saved_variables();
    const auto &q_BTHD = saved[0], &k_BGSD = saved[1], &v_BGSE = saved[2], &out_BTHE = saved[3], &lse_BHT = saved[4];
    const Tensor d_out = gradients[0].stride(-1) == 1 ? gradients[0] : gradients[0].contiguous();
    const auto seen = c10::static_intrusive_pointer_cast<Visible>(context->saved_data["seen"].toCapsule());
    flash::Backward b(problem_of(q_BTHD, k_BGSD, v_BGSE, *seen, context->saved_data["scale"].toDouble()));
    const auto& kernels = found_again(flash::kernels_of(current_isa()));
    Scratch scratch(kernels.backward_scratch(b));
    const Tensor dq = at::empty(q_BTHD.sizes(), q_BTHD.options());
    // Token-major like the queries, so that the gradient of the fused QKV projection is assembled row by row.
    const auto token_major = [&](const Tensor& kv) {
      return at::empty({kv.size(0), kv.size(2), kv.size(1), kv.size(3)}, kv.options()).transpose(1, 2);
    };
    const Tensor dk = token_major(k_BGSD), dv = token_major(v_BGSE);
    b.q = matrix_of(q_BTHD, 2, 1);
    b.k = matrix_of(k_BGSD, 1, 2);
    b.v = matrix_of(v_BGSE, 1, 2);
    b.out = matrix_of(out_BTHE, 2, 1);
    b.d_out = matrix_of(d_out, 2, 1);
    b.dq = matrix_of(dq, 2, 1);
    b.dk = matrix_of(dk, 1, 2);
    b.dv = matrix_of(dv, 1, 2);
    b.lse_BHT = lse_BHT.const_data_ptr<float>();
    b.scratch = scratch.data();
    kernels.backward(b);
    return {dq, dk, dv, Variable(), Variable()};
  }
};

}  // namespace

bool flash_backend_serves(const AttentionInput& input) {
  const auto type = input.q_BTHD.scalar_type();
  const int64_t key_dim = input.q_BTHD.size(3), value_dim = input.kv.v_BGSE.size(3);
  return input.q_BTHD.device().is_cpu() && flash::kernels_of(current_isa()) != nullptr &&
         (type == torch::kBFloat16 || type == torch::kFloat || type == torch::kHalf) && key_dim % 8 == 0 &&
         value_dim % 8 == 0 && key_dim <= flash::kMostWidth && value_dim <= flash::kMostWidth &&
         input.q_BTHD.numel() > 0 && input.kv.k_BGSD.numel() > 0 && input.kv.v_BGSE.numel() > 0 &&
         input.scale.value_or(1) > 0 &&
         !((input.block_mask.defined() || input.skip_share > 0 || input.head_weights_BH.defined()) &&
           wants_gradients(input));
}

AttentionOutput attend_flash(const AttentionInput& given) {
  AttentionInput input = given;
  if (!reads_in_place(given)) input.kv = gather_pages(given);
  const auto type = given.q_BTHD.scalar_type();
  if (type == torch::kHalf) {
    input.q_BTHD = given.q_BTHD.to(torch::kFloat);
    if (!input.kv.is_int8()) input.kv = {input.kv.k_BGSD.to(torch::kFloat), input.kv.v_BGSE.to(torch::kFloat)};
  }
  const double scale = input.scale.value_or(1 / std::sqrt(static_cast<double>(input.q_BTHD.size(3))));
  const auto seen = visible_to(input);
  if (!wants_gradients(given)) {
    auto output = run_forward(input.q_BTHD, input.kv, *seen, scale);
    if (output.out_BTHE.scalar_type() != type) output.out_BTHE = output.out_BTHE.to(type);
    return output;
  }
  const auto results = FlashFunction::apply(input.q_BTHD, input.kv.k_BGSD, input.kv.v_BGSE, seen, scale);
  return {results[0].to(type), results[1]};
}

}  // namespace prism
