#include "prism/layers/weight_list.h"

#include <algorithm>

#include "prism/core/error.h"

namespace prism {
namespace {

std::string joined(const std::string& around, const std::string& inside) {
  return around.empty() || inside.empty() ? around + inside : around + "." + inside;
}

}  // namespace

torch::Tensor FileTensor::of(const torch::Tensor& values) const {
  return values.defined() ? values.narrow(0, first_row, rows) : values;
}

int64_t WeightEntry::products() const {
  int64_t sum = 0;
  for (const auto& use : uses) sum += use.products;
  return sum;
}

WeightVisitor::Scope WeightVisitor::enter(const std::string& name, const std::string& file_name) {
  Scope around = scope_;
  scope_ = {joined(around.name, name), joined(around.file_name, file_name)};
  return around;
}

void WeightVisitor::weight(const std::string& name, const Weight& weight, WeightTraits traits) {
  if (!weight) return;
  const WeightUse use{layer_, traits.products};
  const auto [place, is_new] = places_.emplace(weight.identity(), entries_.size());
  if (!is_new) {
    entries_[place->second].uses.push_back(use);
    return;
  }
  if (traits.rows.empty()) traits.rows = {{{""}, weight.shape()[0]}};
  std::vector<FileTensor> tensors;
  int64_t row = 0;
  for (const auto& part : traits.rows)
    for (const auto& part_name : part.names) {
      tensors.push_back({joined(joined(scope_.file_name, part_name), name), row, part.rows});
      row += part.rows;
    }
  const std::string full_name = joined(scope_.name, name);
  PRISM_ASSERT(row == weight.shape()[0], "weights", "{} with {} rows, of which {} are described", full_name,
               weight.shape()[0], row);
  entries_.push_back({full_name, weight, std::move(traits), std::move(tensors), {use}});
}

void move_weights(const std::vector<WeightEntry>& weights, const torch::Device& device) {
  for (const auto& entry : weights) entry.weight.to(device);
}

void convert_weights(const std::vector<WeightEntry>& weights, torch::ScalarType type) {
  for (const auto& entry : weights) entry.weight.to(type);
}

void clear_gradients(const std::vector<WeightEntry>& weights) {
  for (const auto& entry : weights) entry.weight.tensor().mutable_grad().reset();
}

const Weight& find_weight(const std::vector<WeightEntry>& weights, const std::string& name) {
  const auto found =
      std::find_if(weights.begin(), weights.end(), [&](const WeightEntry& entry) { return entry.name == name; });
  PRISM_ASSERT(found != weights.end(), "weights", "no weight called {}", name);
  return found->weight;
}

}  // namespace prism
