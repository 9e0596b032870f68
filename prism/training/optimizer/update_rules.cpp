#include "prism/training/optimizer/update_rules.h"

#include <ATen/Functions.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "prism/core/error.h"
#include "prism/kernels/matmul.h"

namespace prism {
namespace {

using torch::Tensor;

void check_decay(const char* operation, double weight_decay) {
  PRISM_CHECK(weight_decay >= 0, operation, "expected a weight_decay of at least 0; found {}; raise it.", weight_decay);
}

void check_momentum(const char* operation, double momentum) {
  PRISM_CHECK(momentum >= 0 && momentum < 1, operation, "expected a momentum within [0, 1); found {}; change it.",
              momentum);
}

double scale_of(const std::string& name, double rows, double columns) {
  if (name == "spectral") return std::sqrt(std::max(1.0, rows / columns));
  constexpr double kRootMeanSquare = 0.2;  // that of AdamW's updates
  return kRootMeanSquare * std::sqrt(std::max(rows, columns));
}

/// Appends the named tensors of one kind of state.
void append_state(std::vector<NamedTensor>& tensors, const WeightGroup& group, const std::string& what,
                  const std::vector<Tensor>& memory) {
  for (size_t i = 0; i < memory.size(); ++i) tensors.push_back({group.given[i].name + what, memory[i]});
}

}  // namespace

void check(const AdamWOptions& options) {
  PRISM_CHECK(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1, "adamw",
              "expected betas within [0, 1); found {} and {}; change them.", options.beta1, options.beta2);
  PRISM_CHECK(options.epsilon > 0, "adamw",
              "expected an epsilon above 0, because it divides updates with zero gradients; found {}; raise it.",
              options.epsilon);
  check_decay("adamw", options.weight_decay);
}

void check(const MuonOptions& options) {
  check_momentum("muon", options.momentum);
  check_decay("muon", options.weight_decay);
  PRISM_CHECK(options.iterations >= 1 && options.iterations <= 100, "muon",
              "expected iterations within 1-100; found {}; change them.", options.iterations);
  PRISM_CHECK(options.scale == "adamw" || options.scale == "spectral", "muon",
              "expected the scale adamw or spectral; found \"{}\"; choose one of them.", options.scale);
}

void check(const SgdOptions& options) {
  check_momentum("sgd", options.momentum);
  check_decay("sgd", options.weight_decay);
  PRISM_CHECK(!options.nesterov || options.momentum > 0, "sgd",
              "expected a momentum above 0 with nesterov; found {}; raise it or leave nesterov out.", options.momentum);
}

Tensor TrainedWeight::rows_of(const Tensor& whole) const {
  return first_and_rows ? whole.narrow(0, first_and_rows->first, first_and_rows->second) : whole;
}

void WeightGroup::add(const TrainedWeight& weight) {
  // A view of some rows must not be part of a graph; a whole weight keeps its own gradient.
  weights.push_back(weight.first_and_rows ? weight.rows_of(weight.tensor.detach()) : weight.tensor);
  given.push_back(weight);
}

std::vector<Tensor> WeightGroup::gradients() const {
  std::vector<Tensor> list;
  for (const auto& weight : given) list.push_back(weight.rows_of(weight.tensor.grad()));
  return list;
}

std::vector<Tensor> WeightGroup::zeros() const {
  std::vector<Tensor> list;
  for (const auto& weight : weights)
    list.push_back(torch::zeros(weight.sizes(), weight.options().requires_grad(false)));
  return list;
}

FusedRule::FusedRule(const std::vector<TrainedWeight>& weights, double weight_decay,
                     std::vector<std::string> state_names)
    : parts_(2), state_names_(std::move(state_names)) {
  parts_[0].weight_decay = weight_decay;
  for (const auto& weight : weights) {
    all_.add(weight);
    parts_[weight.decays ? 0 : 1].group.add(weight);
  }
  for (auto& part : parts_)
    for (size_t i = 0; i < state_names_.size(); ++i) part.state.push_back(part.group.zeros());
}

torch::Tensor FusedRule::divisor_tensor(double divisor) const {
  // The kernels divide each gradient by this while reading it.
  return torch::full({}, divisor, all_.weights[0].options().dtype(torch::kFloat).requires_grad(false));
}

std::vector<NamedTensor> FusedRule::state() const {
  std::vector<NamedTensor> tensors;
  for (const auto& part : parts_)
    for (size_t i = 0; i < state_names_.size(); ++i) append_state(tensors, part.group, state_names_[i], part.state[i]);
  return tensors;
}

AdamW::AdamW(const std::vector<TrainedWeight>& weights, const AdamWOptions& options)
    : FusedRule(weights, options.weight_decay, {".mean", ".square"}), options_(options) {
  check(options);
  for (const auto& part : parts_) {
    auto& steps = steps_.emplace_back();
    if (part.group.weights.empty()) continue;
    const auto like = part.group.weights[0].options().dtype(torch::kFloat).requires_grad(false);
    steps.assign(part.group.weights.size(), torch::zeros({}, like));
  }
}

void AdamW::update(double learning_rate, double divisor, int64_t step) {
  if (all_.weights.empty()) return;
  const auto divisors = divisor_tensor(divisor);
  for (size_t i = 0; i < parts_.size(); ++i) {
    auto& part = parts_[i];
    if (part.group.weights.empty()) continue;
    steps_[i][0].fill_(static_cast<double>(step));
    at::_fused_adamw_(part.group.weights, part.group.gradients(), part.state[0], part.state[1], /*max_exp_avg_sqs=*/{},
                      steps_[i], learning_rate, options_.beta1, options_.beta2, part.weight_decay, options_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false, divisors);
  }
}

Sgd::Sgd(const std::vector<TrainedWeight>& weights, const SgdOptions& options)
    : FusedRule(weights, options.weight_decay,
                options.momentum > 0 ? std::vector<std::string>{".momentum"} : std::vector<std::string>{}),
      options_(options) {
  check(options);
}

void Sgd::update(double learning_rate, double divisor, int64_t) {
  if (all_.weights.empty()) return;
  const auto divisors = divisor_tensor(divisor);
  for (auto& part : parts_) {
    if (part.group.weights.empty()) continue;
    const auto momentum = part.state.empty() ? std::vector<Tensor>() : part.state[0];
    at::_fused_sgd_(part.group.weights, part.group.gradients(), momentum, part.weight_decay, options_.momentum,
                    learning_rate, /*dampening=*/0, options_.nesterov, /*maximize=*/false, /*is_first_step=*/false,
                    divisors);
  }
}

Muon::Muon(std::vector<BlockedWeight> weights, const MuonOptions& options, torch::ScalarType type)
    : options_(options), type_(type) {
  check(options);
  for (auto& weight : weights) {
    int64_t rows = 0;
    for (const auto& blocks : weight.blocks) rows += blocks.count * blocks.rows;
    PRISM_ASSERT(weight.weight.tensor.dim() == 2 && rows == weight.weight.rows_of(weight.weight.tensor).size(0), "muon",
                 "{}: blocks of {} rows", weight.weight.name, rows);
    all_.add(weight.weight);
    blocks_.push_back(std::move(weight.blocks));
  }
  momentum_ = all_.zeros();
}

void Muon::update(double learning_rate, double divisor, int64_t) {
  const auto gradients = all_.gradients();
  for (size_t i = 0; i < momentum_.size(); ++i) {
    auto& weight = all_.weights[i];
    const auto& gradient = gradients[i];
    momentum_[i].mul_(options_.momentum).add_(gradient, 1 / divisor);
    const auto direction =
        options_.nesterov ? torch::add(gradient / divisor, momentum_[i], options_.momentum) : momentum_[i];
    weight.mul_(1 - learning_rate * options_.weight_decay);
    int64_t row = 0;
    for (const auto& [count, rows] : blocks_[i]) {
      const int64_t columns = weight.size(1);
      const auto matrices = direction.narrow(0, row, count * rows).reshape({count, rows, columns});
      const double scale = scale_of(options_.scale, static_cast<double>(rows), static_cast<double>(columns));
      weight.narrow(0, row, count * rows)
          .sub_(orthogonalise(matrices, options_.iterations, type_).view({count * rows, columns}),
                learning_rate * scale);
      row += count * rows;
    }
  }
}

std::vector<NamedTensor> Muon::state() const {
  std::vector<NamedTensor> tensors;
  append_state(tensors, all_, ".momentum", momentum_);
  return tensors;
}

Tensor orthogonalise(const Tensor& matrices, int64_t iterations, torch::ScalarType type) {
  constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
  constexpr double kSmallest = 1e-30;  // keeps zeros zeros
  const bool tall = matrices.size(1) > matrices.size(2);
  const auto norms = matrices.flatten(1).norm(2, {1}).clamp_min(kSmallest).view({-1, 1, 1});
  auto x = (matrices / norms).to(type);
  if (tall) x = x.transpose(1, 2).contiguous();  // makes the products smaller
  const auto a = at::empty({x.size(0), x.size(1), x.size(1)}, x.options()), factor = at::empty_like(a);
  auto next = at::empty_like(x);
  for (int64_t i = 0; i < iterations; ++i) {
    bmm_into(a, x, x.transpose(1, 2));
    bmm_into(factor, a, a);
    factor.mul_(kC).add_(a, kB).diagonal(0, 1, 2).add_(kA);
    bmm_into(next, factor, x);
    std::swap(x, next);
  }
  return (tall ? x.transpose(1, 2) : x).to(torch::kFloat).contiguous();
}

}  // namespace prism
