// Accuracies and perplexities of a task, with standard errors, and their differences between two models.
//
//   for (const Figure& figure : figures_of(task, items, answers)) print(figure.name, figure.value);
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "prism/core/statistics.h"
#include "prism/evaluation/tasks/answers.h"
#include "prism/evaluation/tasks/task.h"

namespace prism {

struct Figure {
  std::string name;
  double value = 0;
  double standard_error = NAN;  ///< NaN: none
};

/// What an item adds to each figure of its task. With l the log-likelihoods of its choices:
///
///   acc              1 if the right choice has the largest l; of equal ones, the first counts
///   acc_norm         the same with l divided by the characters of the choice, acc_bytes by its bytes in UTF-8
///   acc, completion  1 if the model itself would write the continuation
///   exact_match      1 if the answer without blanks at its ends is one of the targets
///   contains         the share of the targets that occur in the answer, regardless of case
///   string_match_all, string_match_part  RULER's: the same in percent; 100 if one of the targets occurs
///   perplexities     l
std::vector<double> item_scores(const Task& task, const TaskItem& item, const ItemAnswers& answers);

/// By what the sum of each figure's scores is divided: 1 for an item, or its words, bytes or tokens.
std::vector<double> item_units(const Task& task, const TaskItem& item, const ItemAnswers& answers);

/// The figures of a task over its items, in its order: the mean of accuracies, with n items and the sum L of l:
///
///   perplexity = exp(-L / n),  word_perplexity = exp(-L / words),  byte_perplexity = exp(-L / bytes),
///   bits_per_byte = -L / (bytes log 2),  token_perplexity = exp(-L / tokens that were scored)
///
/// Standard errors are deviation / sqrt(n) for means, and those of a bootstrap for `perplexity`. Source:
/// lm-evaluation-harness, which draws 100,000 samples with other random numbers; these are 10,000.
std::vector<Figure> figures_of(const Task& task, std::span<const TaskItem> items, std::span<const ItemAnswers> answers);

/// The mean of a figure over the tasks of a group, each counting alike, with the error of the mean of independent ones.
Figure group_figure(const std::vector<Figure>& parts);

/// A figure of a minus that of b on the same items. Of perplexities there is no p (NaN), and the error is that of a
/// bootstrap over items.
struct FigureDifference {
  std::string name;
  PairedScore paired;
};
std::vector<FigureDifference> differences_of(const Task& task, std::span<const TaskItem> items,
                                             std::span<const ItemAnswers> a, std::span<const ItemAnswers> b);

}  // namespace prism
