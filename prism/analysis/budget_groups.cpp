#include "prism/analysis/budget_groups.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/statistics.h"
#include "prism/kernels/to_vector.h"

namespace prism {

ExampleGroup all_examples(int64_t count) {
  ExampleGroup group{"all", "all", std::vector<int64_t>(static_cast<size_t>(count))};
  std::iota(group.examples.begin(), group.examples.end(), 0);
  return group;
}

std::vector<ExampleGroup> groups_by_class(const std::vector<int32_t>& labels, const std::vector<std::string>& names) {
  std::vector<ExampleGroup> groups;
  for (const auto& name : names) groups.push_back({"class", name, {}});
  for (size_t i = 0; i < labels.size(); ++i)
    groups.at(static_cast<size_t>(labels[i])).examples.push_back(static_cast<int64_t>(i));
  std::erase_if(groups, [](const ExampleGroup& group) { return group.examples.empty(); });
  return groups;
}

std::vector<ExampleGroup> groups_by_third(const std::string& by, const std::vector<std::string>& names,
                                          const std::vector<double>& values) {
  PRISM_ASSERT(names.size() == 3, "budgets", "{} names for three groups", names.size());
  auto order = all_examples(static_cast<int64_t>(values.size())).examples;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return values[static_cast<size_t>(a)] < values[static_cast<size_t>(b)];
  });
  std::vector<ExampleGroup> groups;
  for (size_t third = 0; third < 3; ++third) {
    const auto place = [&](size_t part) { return order.begin() + static_cast<int64_t>(order.size() * part / 3); };
    ExampleGroup group{by, names[third], {place(third), place(third + 1)}};
    std::sort(group.examples.begin(), group.examples.end());
    if (!group.examples.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

std::vector<ExampleGroup> groups_of(const ExampleTraits& traits) {
  std::vector<ExampleGroup> groups = {all_examples(std::ssize(traits.labels))};
  const auto append = [&](std::vector<ExampleGroup> more) {
    std::move(more.begin(), more.end(), std::back_inserter(groups));
  };
  append(groups_by_class(traits.labels, traits.classes));
  if (traits.lengths.size() < 3) return groups;
  append(groups_by_third("length", {"short", "middle", "long"}, traits.lengths));
  if (!traits.losses.empty()) append(groups_by_third("difficulty", {"easy", "middle", "hard"}, traits.losses));
  return groups;
}

std::vector<LayerBudgets> summarise_budgets(const std::vector<BudgetDecision>& budgets, const ExampleGroup& group) {
  PRISM_ASSERT(!group.examples.empty(), "budgets", "the group {} has no examples", group.name);
  const auto rows = torch::tensor(group.examples, torch::kLong);
  std::vector<LayerBudgets> layers;
  for (size_t l = 0; l < budgets.size(); ++l) {
    if (!budgets[l].share_B.defined()) continue;
    const auto p_NH = budgets[l].probability_BH.index_select(0, rows).to(torch::kDouble);
    const auto kept_NH = budgets[l].kept_BH.index_select(0, rows).to(torch::kDouble);
    const auto s_N = budgets[l].share_B.index_select(0, rows).to(torch::kDouble);
    const auto share = statistic(to_doubles(s_N));
    const auto entropy = statistic(to_doubles(at::special_entr(p_NH).sum(1)));
    layers.push_back(
        {.layer = static_cast<int64_t>(l),
         .heads = p_NH.size(1),
         .by = group.by,
         .group = group.name,
         .examples = share.count,
         .share = share.mean,
         .share_sd = share.deviation,
         .kept_share = kept_NH.mean().item<double>(),
         .kept_probability = (p_NH * kept_NH).sum(1).mean().item<double>(),
         .entropy = entropy.mean,
         .entropy_sd = entropy.deviation,
         .share_quartiles = to_doubles(at::quantile(s_N, torch::tensor({0.25, 0.5, 0.75}, torch::kDouble))),
         .head_kept = to_doubles(kept_NH.mean(0)),
         .head_probability = to_doubles(p_NH.mean(0))});
  }
  return layers;
}

}  // namespace prism
