// How prism eval prints the figures of tasks, and the differences of two models.
//
//   print_figures(figures, /*shows_kept=*/loaded.prefill.selects());
#pragma once

#include <string>
#include <vector>

#include "prism/core/json.h"
#include "prism/evaluation/tasks/figures.h"
#include "prism/evaluation/tasks/samples.h"

namespace prism {

/// One row for each figure; of a group that is whole, one row for all its parts.
/// @param shows_kept  with the density of attention and, where it was measured, recall.
void print_figures(const std::vector<TaskFigures>& all, bool shows_kept);

/// What two models answered to one task.
struct TaskDifference {
  Task task;
  std::vector<FigureDifference> figures;
  std::vector<double> nats;  ///< KL divergence of each scored token; empty: not known
};

/// How far one model's distributions are from another's: number of tokens, mean, 95th and 99th percentile.
/// @param nats  KL divergence of each scored token; at least one.
Json divergence_to_json(const std::vector<double>& nats);
/// "of 100 scored tokens: mean 0.01 nats, 95th percentile 0.03, 99th 0.1".
std::string divergence_text(const std::vector<double>& nats);

/// One row for each figure and one for the divergence; of a group that is whole, one for all its parts.
void print_differences(const std::vector<TaskDifference>& all);
/// By task; groups that are whole stand beside their parts.
Json differences_to_json(const std::vector<TaskDifference>& all);

}  // namespace prism
