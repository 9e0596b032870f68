// What head budgets decide for groups of examples: the examples of a class, short and long ones, easy and hard ones.
//
//   const auto labelled = label_examples(model.classifier, data, {});
//   for (const auto& group : groups_of({labelled->labels, names, lengths, {}}))
//     for (const auto& layer : summarise_budgets(labelled->budgets, group)) fmt::print("{:.3f}\n", layer.share);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/attention/budget/budgets.h"

namespace prism {

struct ExampleGroup {
  std::string by, name;           ///< what the examples are divided by ("class"), and which part this is ("neutral")
  std::vector<int64_t> examples;  ///< ascending
};

/// All examples as one group, by "all".
ExampleGroup all_examples(int64_t count);
/// A group for each class that has examples, by "class". @param names  of the classes.
std::vector<ExampleGroup> groups_by_class(const std::vector<int32_t>& labels, const std::vector<std::string>& names);
/// The third of the examples with the lowest values, the middle third and the highest; examples with equal values stay
/// in their order. Groups without examples are left out.
/// @param by     what the values are, e.g. "length". @param names  of the three groups.
std::vector<ExampleGroup> groups_by_third(const std::string& by, const std::vector<std::string>& names,
                                          const std::vector<double>& values);

/// What examples are grouped by. A list has a value for each example.
struct ExampleTraits {
  std::vector<int32_t> labels;
  std::vector<std::string> classes;  ///< names of the labels
  std::vector<double> lengths;       ///< in tokens
  std::vector<double> losses;        ///< of another model; empty: no groups by difficulty
};
/// All examples, those of each class and, of 3 examples or more, the thirds by "length" and, by losses, those by
/// "difficulty".
std::vector<ExampleGroup> groups_of(const ExampleTraits& traits);

/// What one layer's head budget decides for a group.
struct LayerBudgets {
  int64_t layer = 0, heads = 0;
  std::string by, group;
  int64_t examples = 0;
  double share = 0, share_sd = 0, kept_share = 0, kept_probability = 0, entropy = 0, entropy_sd = 0;
  std::vector<double> share_quartiles;
  std::vector<double> head_kept, head_probability;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("heads", heads, "query heads");
    v("by", by, "what the examples are divided by: all, class, length, difficulty");
    v("group", group, "which part this is");
    v("examples", examples, "number of examples");
    v("share", share, "mean share of heads s");
    v("share_sd", share_sd, "its sample standard deviation over examples");
    v("share_quartiles", share_quartiles, "quartiles of s over examples: 25%, 50% and 75%");
    v("kept_share", kept_share, "mean share of heads that are kept, k / H");
    v("kept_probability", kept_probability, "mean sum of p over the kept heads; what is missing to 1 is left out");
    v("entropy", entropy, "mean entropy of the choice of heads p, - sum p ln p, in nats; ln H if all are equal");
    v("entropy_sd", entropy_sd, "its sample standard deviation over examples");
    v("head_kept", head_kept, "for each head, the share of the examples that keep it");
    v("head_probability", head_probability, "mean p of each head");
  }
};

/// One entry for each layer with a budget. @param budgets  by layer, with a row for each example.
std::vector<LayerBudgets> summarise_budgets(const std::vector<BudgetDecision>& budgets, const ExampleGroup& group);

}  // namespace prism
