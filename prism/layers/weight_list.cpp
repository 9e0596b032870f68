#include "prism/layers/weight_list.h"

#include <algorithm>
#include <numeric>

#include "prism/core/error.h"

namespace prism {
namespace {

std::string joined(const std::string& around, const std::string& inside) {
  return around.empty() || inside.empty() ? around + inside : around + "." + inside;
}

bool is_matrix(WeightRole role) {
  return role == WeightRole::matrix || role == WeightRole::table;
}

/// Returns true if two uses of one weight describe it alike.
bool is_same(const WeightTraits& a, const WeightTraits& b) {
  return (a.role == b.role || (is_matrix(a.role) && is_matrix(b.role))) &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(), [](const auto& x, const auto& y) {
           return x.rows == y.rows && x.heads == y.heads && x.names.size() == y.names.size();
         });
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
  scope_ = {joined(around.name, name), joined(around.file_name, file_name), joined(around.part, file_name)};
  return around;
}

void WeightVisitor::weight(const std::string& name, const Weight& weight, WeightTraits traits) {
  if (!weight) return;
  const std::string full_name = joined(scope_.name, name);
  const WeightUse use{full_name.substr(0, full_name.find('.')), layer_, traits.products};
  if (traits.rows.empty()) traits.rows = {{{""}, weight.shape()[0]}};
  const auto [place, is_new] = places_.emplace(weight.identity(), entries_.size());
  if (!is_new) {
    auto& entry = entries_[place->second];
    PRISM_ASSERT(is_same(entry.traits, traits), "weights", "{} shares {}, but describes it differently", full_name,
                 entry.name);
    entry.uses.push_back(use);
    return;
  }
  std::vector<FileTensor> tensors;
  int64_t row = 0;
  for (const auto& part : traits.rows)
    for (const auto& part_name : part.names) {
      const std::string in_layer = layer_ ? joined(scope_.part, part_name) : "";
      tensors.push_back({.name = joined(joined(scope_.file_name, part_name), name),
                         .part = traits.role == WeightRole::bias ? joined(in_layer, "bias") : in_layer,
                         .first_row = row,
                         .rows = part.rows});
      row += part.rows;
    }
  PRISM_ASSERT(row == weight.shape()[0], "weights", "{} has {} rows, but its description has {}", full_name,
               weight.shape()[0], row);
  entries_.push_back({full_name, weight, std::move(traits), std::move(tensors), {use}});
}

int64_t parameter_count(const std::vector<WeightEntry>& weights) {
  return std::accumulate(weights.begin(), weights.end(), int64_t{0},
                         [](int64_t sum, const WeightEntry& entry) { return sum + entry.weight.numel(); });
}

int64_t inference_parameters(const std::vector<WeightEntry>& weights) {
  return std::accumulate(weights.begin(), weights.end(), int64_t{0}, [](int64_t sum, const WeightEntry& entry) {
    return sum + (entry.traits.training_only ? 0 : entry.weight.numel());
  });
}

void move_weights(const std::vector<WeightEntry>& weights, const torch::Device& device) {
  for (const auto& entry : weights) entry.weight.to(device);
}

void clear_gradients(const std::vector<WeightEntry>& weights) {
  for (const auto& entry : weights) entry.weight.tensor().mutable_grad().reset();
}

}  // namespace prism
