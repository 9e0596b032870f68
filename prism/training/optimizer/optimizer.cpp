#include "prism/training/optimizer/optimizer.h"

#include <ATen/ops/stack.h>
#include <ATen/record_function.h>

#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/field_names.h"
#include "prism/core/text/names.h"
#include "prism/kernels/euclidean_norm.h"

namespace prism {
namespace {

using Rules = std::vector<std::unique_ptr<UpdateRule>>;

using Weights = std::vector<WeightEntry>;

TrainedWeight whole(const WeightEntry& entry) {
  const auto role = entry.traits.role;
  return {entry.name, entry.weight.tensor(), role == WeightRole::matrix || role == WeightRole::table};
}

bool is_trained(const WeightEntry& entry, const FileTensor& tensor) {
  return !entry.weight.is_fixed(tensor.first_row, tensor.rows);
}

/// The rows of one tensor of a weight.
TrainedWeight part(const WeightEntry& entry, const FileTensor& tensor) {
  auto rows = whole(entry);
  rows.name = tensor.name;
  rows.first_and_rows = {tensor.first_row, tensor.rows};
  return rows;
}

/// The rows of a weight that are trained: all of them, or those of each tensor that is not fixed.
std::vector<TrainedWeight> trained(const WeightEntry& entry) {
  if (!entry.weight.has_fixed_rows()) return {whole(entry)};
  std::vector<TrainedWeight> rows;
  for (const auto& tensor : entry.tensors)
    if (is_trained(entry, tensor)) rows.push_back(part(entry, tensor));
  return rows;
}

/// The weights for which `taken` returns false.
std::vector<TrainedWeight> remaining(const Weights& weights, bool (*taken)(const WeightEntry&)) {
  std::vector<TrainedWeight> left;
  for (const auto& entry : weights) {
    if (taken(entry)) continue;
    const auto rows = trained(entry);
    left.insert(left.end(), rows.begin(), rows.end());
  }
  return left;
}

bool none(const WeightEntry&) {
  return false;
}

bool is_matrix_of_layer(const WeightEntry& entry) {
  return entry.traits.role == WeightRole::matrix && entry.layer().has_value();
}

/// The matrices stacked in the trained rows of a weight.
std::vector<BlockedWeight> blocked(const WeightEntry& entry, bool per_head) {
  BlockedWeight all{whole(entry), {}};
  std::vector<RowBlocks> of_tensors;
  for (const auto& group : entry.traits.rows) {
    const int64_t cuts = per_head ? group.heads : 1, rows = group.rows / cuts;
    all.blocks.push_back({static_cast<int64_t>(group.names.size()) * cuts, rows});
    of_tensors.insert(of_tensors.end(), group.names.size(), {cuts, rows});
  }
  if (!entry.weight.has_fixed_rows()) return {all};
  std::vector<BlockedWeight> weights;
  for (size_t i = 0; i < entry.tensors.size(); ++i)
    if (is_trained(entry, entry.tensors[i])) weights.push_back({part(entry, entry.tensors[i]), {of_tensors[i]}});
  return weights;
}

Rules make_adamw(const Weights& weights, const OptimizerOptions& options, torch::ScalarType) {
  Rules rules;
  rules.push_back(std::make_unique<AdamW>(remaining(weights, none), options.adamw));
  return rules;
}

Rules make_muon(const Weights& weights, const OptimizerOptions& options, torch::ScalarType type) {
  std::vector<BlockedWeight> matrices;
  for (const auto& entry : weights)
    if (is_matrix_of_layer(entry))
      for (auto& matrix : blocked(entry, options.muon.per_head)) matrices.push_back(std::move(matrix));
  Rules rules;
  rules.push_back(std::make_unique<Muon>(std::move(matrices), options.muon, type));
  rules.push_back(std::make_unique<AdamW>(remaining(weights, is_matrix_of_layer), options.adamw));
  return rules;
}

Rules make_sgd(const Weights& weights, const OptimizerOptions& options, torch::ScalarType) {
  Rules rules;
  rules.push_back(std::make_unique<Sgd>(remaining(weights, none), options.sgd));
  return rules;
}

using Maker = Rules (*)(const Weights&, const OptimizerOptions&, torch::ScalarType);

Maker find_maker(const std::string& kind) {
  static const std::map<std::string, Maker> table = {{"adamw", make_adamw}, {"muon", make_muon}, {"sgd", make_sgd}};
  return find_by_name(table, kind, "optimizer", "optimizer");
}

}  // namespace

void check(const OptimizerOptions& options) {
  naming_field("train.optimizer", [&] { find_maker(options.kind); });
  naming_field("train.adamw", [&] { check(options.adamw); });
  naming_field("train.muon", [&] { check(options.muon); });
  naming_field("train.sgd", [&] { check(options.sgd); });
  PRISM_CHECK(options.clip >= 0, "optimizer", "train.clip: expected at least 0; found {}; raise it.", options.clip);
}

Optimizer::Optimizer(Rules rules, double clip) : rules_(std::move(rules)), clip_(clip) {}

double Optimizer::gradient_norm() const {
  RECORD_FUNCTION("prism::gradient_norm", {});
  std::vector<torch::Tensor> norms;
  for (const auto& rule : rules_)
    for (const auto& gradient : rule->weights().gradients()) norms.push_back(euclidean_norm(gradient));
  return at::stack(norms).norm().item<double>();
}

void Optimizer::step(double learning_rate, double norm) {
  RECORD_FUNCTION("prism::optimizer", {});
  torch::NoGradGuard no_gradients;
  ++steps_;
  const double divisor = clip_ > 0 && norm > clip_ ? norm / clip_ : 1.0;
  for (auto& rule : rules_) {
    rule->update(learning_rate, divisor, steps_);
    for (const auto& weight : rule->weights().given) {
      // Fused kernels bypass autograd, but caches of the weight rely on its version counter.
      weight.tensor.unsafeGetTensorImpl()->bump_version();
      weight.tensor.mutable_grad().reset();
    }
  }
}

std::vector<NamedTensor> Optimizer::state() const {
  std::vector<NamedTensor> tensors;
  for (const auto& rule : rules_)
    for (const auto& tensor : rule->state()) tensors.push_back(tensor);
  return tensors;
}

Optimizer make_optimizer(const Weights& weights, const OptimizerOptions& options, torch::ScalarType type) {
  check(options);
  return {find_maker(options.kind)(weights, options, type), options.clip};
}

}  // namespace prism
