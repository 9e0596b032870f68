#include "prism/training/optimizer.h"

#include <ATen/ops/stack.h>
#include <ATen/record_function.h>

#include "prism/core/error.h"
#include "prism/core/names.h"
#include "prism/kernels/euclidean_norm.h"

namespace prism {
namespace {

using Rules = std::vector<std::unique_ptr<UpdateRule>>;

/// Those of the decoder that `taken` does not hold.
std::vector<NamedTensor> weights_of(Decoder decoder, const std::vector<BlockedWeight>& taken = {}) {
  std::vector<NamedTensor> weights;
  for (const auto& parameter : decoder->named_parameters()) {
    const bool is_taken = std::any_of(taken.begin(), taken.end(),
                                      [&](const auto& blocked) { return blocked.weight.name == parameter.key(); });
    if (!is_taken) weights.push_back({parameter.key(), parameter.value()});
  }
  return weights;
}

std::vector<BlockedWeight> matrices_of(Decoder decoder, bool per_head) {
  std::vector<BlockedWeight> matrices;
  for (size_t i = 0; i < decoder->blocks.size(); ++i) {
    const auto& layer = decoder->config().layers[i];
    const auto& block = decoder->blocks[i];
    const auto heads = [&](int64_t count) {
      return per_head ? RowBlocks{count, layer.head_dim} : RowBlocks{1, count * layer.head_dim};
    };
    const auto add = [&](const std::string& name, const torch::Tensor& weight, std::vector<RowBlocks> blocks) {
      matrices.push_back({{fmt::format("blocks_{}.{}.weight", i, name), weight}, std::move(blocks)});
    };
    add("attention.qkv", block->attention->qkv->weight,
        {heads(layer.heads), heads(layer.kv_heads), heads(layer.kv_heads)});
    if (block->attention->out) add("attention.out", block->attention->out->weight, {{1, decoder->config().d_model}});
    if (block->mlp->gate_up) add("mlp.gate_up", block->mlp->gate_up->weight, {{2, layer.ffn.width}});
    for (size_t h = 0; h < block->mlp->inner.size(); ++h)
      add(fmt::format("mlp.inner_{}", h), block->mlp->inner[h]->weight, {{1, layer.ffn.width}});
    add("mlp.down", block->mlp->down->weight, {{1, decoder->config().d_model}});
  }
  return matrices;
}

Rules make_adamw(Decoder decoder, const OptimizerOptions& options) {
  Rules rules;
  rules.push_back(std::make_unique<AdamW>(weights_of(decoder), options.adamw));
  return rules;
}

Rules make_muon(Decoder decoder, const OptimizerOptions& options) {
  const auto matrices = matrices_of(decoder, options.muon.per_head);
  Rules rules;
  rules.push_back(std::make_unique<Muon>(matrices, options.muon, decoder->compute_type()));
  rules.push_back(std::make_unique<AdamW>(weights_of(decoder, matrices), options.adamw));
  return rules;
}

Rules make_sgd(Decoder decoder, const OptimizerOptions& options) {
  Rules rules;
  rules.push_back(std::make_unique<Sgd>(weights_of(decoder), options.sgd));
  return rules;
}

using Maker = Rules (*)(Decoder, const OptimizerOptions&);

Maker find_maker(const std::string& kind) {
  static const std::map<std::string, Maker> table = {{"adamw", make_adamw}, {"muon", make_muon}, {"sgd", make_sgd}};
  return find_by_name(table, kind, "optimizer", "optimizer");
}

}  // namespace

void check(const OptimizerOptions& options) {
  find_maker(options.kind);
  check(options.adamw);
  check(options.muon);
  check(options.sgd);
  PRISM_CHECK(options.clip >= 0, "optimizer", "expected a clip of at least 0; found {}; raise it.", options.clip);
}

Optimizer::Optimizer(Rules rules, double clip) : rules_(std::move(rules)), clip_(clip) {}

double Optimizer::gradient_norm() const {
  RECORD_FUNCTION("prism::gradient_norm", {});
  std::vector<torch::Tensor> norms;
  for (const auto& rule : rules_)
    for (const auto& weight : rule->weights()) norms.push_back(euclidean_norm(weight.grad()));
  return at::stack(norms).norm().item<double>();
}

void Optimizer::step(double learning_rate, double norm) {
  RECORD_FUNCTION("prism::optimizer", {});
  torch::NoGradGuard no_gradients;
  ++steps_;
  const double divisor = clip_ > 0 && norm > clip_ ? norm / clip_ : 1.0;
  for (auto& rule : rules_) {
    rule->update(learning_rate, divisor, steps_);
    for (const auto& weight : rule->weights()) {
      // Fused kernels write behind autograd's back; whoever caches a copy of the weight goes by its version.
      weight.unsafeGetTensorImpl()->bump_version();
      weight.mutable_grad().reset();
    }
  }
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> tensors;
  for (const auto& rule : rules_)
    for (const auto& tensor : rule->state()) tensors.push_back(tensor);
  return tensors;
}

Optimizer make_optimizer(Decoder decoder, const OptimizerOptions& options) {
  check(options);
  return {find_maker(options.kind)(decoder, options), options.clip};
}

}  // namespace prism
