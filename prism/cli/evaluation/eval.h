// The tasks of prism eval: each reads its options from the same words and prints its own results.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/prefill_options.h"
#include "prism/core/json.h"
#include "prism/core/statistics.h"
#include "prism/data/text_source.h"
#include "prism/evaluation/classification.h"
#include "prism/evaluation/divergence.h"
#include "prism/evaluation/perplexity.h"
#include "prism/evaluation/ruler/ruler.h"
#include "prism/evaluation/tasks/items.h"

namespace prism {

struct EvalWords {
  std::string model, against;
  std::vector<std::string> tasks = {"perplexity"};
  std::vector<std::string> files;
  PrefillFlags prefill;
  // Perplexity and divergence.
  TextWindowOptions windows;
  TextOptions text;
  // Divergence; its `windows` are those above.
  DivergenceOptions divergence;
  std::string cache_type = "auto";
  // Perplexity and tasks that ask questions.
  std::string out, against_prefill;
  std::vector<std::string> against_sets;
  // Tasks that ask questions.
  std::string data;
  ItemOptions items;
  RulerOptions ruler;
  bool apply_chat_template = false;
  // Classification.
  std::string split = "test";
  LabelOptions labels;

  ComputeOptions compute;
  bool json = false;
};

/// Prints a name and its value in two columns.
void print_row(std::string_view name, std::string_view value);

/// What the comparison of one figure of two models begins with.
/// @param model, against  what they are called.
/// @param counted  documents or examples; with fewer than two, there is no error.
Json difference_to_json(const std::string& model, const std::string& against, const char* task, double difference,
                        double standard_error, const Interval& interval, int64_t counted);
/// "-0.0123 to +0.0045, which contains 0".
std::string interval_text(const Interval& interval, int digits);
/// A difference with its sign; large ones, of perplexities that say nothing, with four digits and an exponent.
std::string signed_text(double value, int digits);

/// @throws InputError for a classifier.
void check_is_language_model(const std::string& model);

/// One function per task, in the file named after it; the last one serves those of evaluation/tasks.
void run_divergence(EvalWords& words);
void run_classification(EvalWords& words);
void run_tasks(EvalWords& words);

}  // namespace prism
