// Tables and pictures of the folders that `prism eval --task ... --out FOLDER` writes: models by tasks.
//
//   const EvaluationRecords records = read_evaluations({"results/dense", "results/spectral"});
//   for (const Table& table : evaluation_tables(records)) page += table_html(table);
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "prism/core/numbers/item_figure.h"
#include "prism/report/analysis/lines.h"
#include "prism/report/tables/table.h"

namespace prism {

/// One figure of one task, or of a group of tasks.
struct EvaluatedFigure {
  std::string task, figure;  ///< "piqa", "acc_norm"
  double value = 0, error = 0;
  bool has_error = false;
  /// Of the items, in their order, of each part of a group, or of the task alone.
  std::vector<ItemScores> scores;
  std::string items;  ///< the same for the same questions; empty without a file of samples
};

struct EvaluatedModel {
  std::string label;    ///< the model, with its selector if it has one
  int64_t context = 0;  ///< tokens; 0: not stated
  std::vector<EvaluatedFigure> figures;
  /// Of each task and group, without the parts of groups: the share of key blocks that is kept, the share of the exact
  /// attention that these hold, and the time that was taken.
  std::map<std::string, double> density, recall, seconds;
  /// Mean scores of needle_grid by length and depth.
  std::map<int64_t, std::map<int64_t, double>> grid;
};

struct EvaluationRecords {
  std::vector<EvaluatedModel> models;

  bool empty() const { return models.empty(); }
};

/// @throws InputError for folders without results_prism.json, and for files of another layout.
EvaluationRecords read_evaluations(const std::vector<std::filesystem::path>& folders);

/// A table of all figures by model; one of the differences to the first model, paired by item; and one of densities, if
/// a model has a selector. Empty tables are omitted.
std::vector<Table> evaluation_tables(const EvaluationRecords& records);

/// The grid of needles of each model that has one. Names are unique.
std::vector<AnalysisPicture> evaluation_pictures(const EvaluationRecords& records);

}  // namespace prism
