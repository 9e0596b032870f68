// Figures of tasks as functions of the scores of their items, and their paired differences.
//
//   const double perplexity = item_figure("word_perplexity", {log_likelihoods, words});
//   const PairedScore paired = paired_figure("acc", {scores_a, ones}, {scores_b, ones});
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/core/statistics.h"

namespace prism {

/// Tables show the parts of a group of tasks beside it if it has no more than these.
constexpr int64_t kMostPartsShown = 20;

/// Of each item.
struct ItemScores {
  std::vector<double> scores;
  std::vector<double> units;  ///< by whose sum the sum of scores is divided
};

/// Returns true for perplexities and bits, of which less is better and which are no means of scores.
bool is_less_better(const std::string& figure);

/// With m the sum of scores divided by that of units: exp(-m) for perplexities, -m / log 2 for bits, m for other
/// figures. @throws InternalError without items.
double item_figure(const std::string& figure, const ItemScores& items);

/// The standard error of item_figure(): that of the mean, or for perplexities and bits that of a bootstrap over 10,000
/// samples of the items. 0 for one item, where it is undefined; NaN if the figure of a sample is not finite.
double item_figure_error(const std::string& figure, const ItemScores& items);

/// The figure of a minus that of b. For perplexities and bits the standard error is that of a bootstrap over items, and
/// there is no p (NaN); error and interval are NaN if the figure of a sample is not finite. @throws InternalError for
/// lists of different lengths, other units, or without items.
PairedScore paired_figure(const std::string& figure, const ItemScores& a, const ItemScores& b);

}  // namespace prism
