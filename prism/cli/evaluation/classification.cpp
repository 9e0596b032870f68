// prism eval --task classification: how well a classifier labels the examples of a data folder.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "prism/cli/evaluation/eval.h"
#include "prism/cli/labelled_reading.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/core/timer.h"
#include "prism/evaluation/paired.h"
#include "prism/kernels/compute_type.h"

namespace prism {
namespace {

constexpr size_t kMostColumns = 12;  ///< of a class name in the confusion matrix

void print_confusion(const ClassificationScores& scores, const std::vector<std::string>& names) {
  size_t width = 7;
  std::vector<std::string> shown;
  for (const auto& name : names) {
    shown.push_back(short_line(name, kMostColumns));
    width = std::max(width, display_width(shown.back()));
  }
  const auto padded = [&](const std::string& text) { return std::string(width - display_width(text), ' ') + text; };
  fmt::print("\nExamples of each class (rows) by predicted class (columns), with recall, precision and F1:\n\n");
  std::string head = padded("");
  for (const auto& name : shown) head += "  " + padded(name);
  for (const char* name : {"recall", "precision", "F1"}) head += fmt::format("  {:>9}", name);
  fmt::print("{}\n", head);
  for (size_t i = 0; i < names.size(); ++i) {
    std::string row = padded(shown[i]);
    for (const int64_t count : scores.confusion[i]) row += fmt::format("  {:>{}}", count, width);
    const auto& of_class = scores.by_class[i];
    for (const double value : {of_class.recall, of_class.precision, of_class.f1})
      row += std::isnan(value) ? fmt::format("  {:>9}", "none") : fmt::format("  {:>9.4f}", value);
    fmt::print("{}\n", row);
  }
}

std::string by_layer(const std::vector<double>& values) {
  return fmt::format("{:#.3g}  (mean of each layer)", fmt::join(values, "  "));
}

void print_table(const EvalWords& words, const ClassifierFolder& model, const LabelledExamples& labelled,
                 const ClassificationScores& scores, double seconds) {
  for (const auto& [name, value] : {std::pair{"accuracy", scores.accuracy},
                                    {"balanced accuracy", scores.balanced_accuracy},
                                    {"macro-F1", scores.macro_f1}})
    print_row(name, fmt::format("{:.4f}", value));
  print_row("loss", fmt::format("{:.4f} nats per example", scores.loss));
  print_row("examples", fmt::format("{}, split {} of {}", scores.examples, words.split, plain_line(words.files[0])));
  if (labelled.cut > 0)
    print_row("cut texts", fmt::format("{}, to the context of {}", labelled.cut,
                                       counted(model.classifier->config().context, "token")));
  if (!labelled.budgets.empty()) {
    const size_t layers = model.classifier->config().layers.size();
    print_row("share of heads s", by_layer(mean_shares(labelled.budgets, layers)));
    print_row("computed heads", by_layer(mean_kept_shares(labelled.budgets, layers)));
    if (words.labels.changes_budgets())
      print_row("changed budgets",
                fmt::format("heads: {}, gain: {}", words.labels.budget_heads, words.labels.budget_gain));
  }
  print_row("computed in",
            fmt::format("{}, {}, {} examples/s", compute_type_name(model.classifier->compute_type()),
                        short_duration(seconds), short_number(static_cast<double>(scores.examples) / seconds)));
  print_confusion(scores, model.scheme.classes);
}

Json to_json(const EvalWords& words, const std::string& name, const ClassifierFolder& model,
             const LabelledExamples& labelled, const ClassificationScores& scores, double seconds) {
  Json json = {{"task", "classification"},
               {"model", name},
               {"data", words.files[0]},
               {"split", words.split},
               {"accuracy", scores.accuracy},
               {"balanced_accuracy", scores.balanced_accuracy},
               {"macro_f1", scores.macro_f1},
               {"loss", scores.loss},
               {"examples", scores.examples},
               {"cut_examples", labelled.cut},
               {"classes", model.scheme.classes},
               {"confusion", scores.confusion},
               {"dtype", compute_type_name(model.classifier->compute_type())},
               {"seconds", seconds}};
  for (const auto& [field, value] : {std::pair{"recall", &ClassificationScores::Class::recall},
                                     {"precision", &ClassificationScores::Class::precision},
                                     {"f1", &ClassificationScores::Class::f1}})
    for (const auto& of_class : scores.by_class)
      json[field].push_back(std::isnan(of_class.*value) ? Json() : Json(of_class.*value));
  if (!labelled.budgets.empty()) {
    const size_t layers = model.classifier->config().layers.size();
    json["head_share"] = mean_shares(labelled.budgets, layers);
    json["kept_share"] = mean_kept_shares(labelled.budgets, layers);
    json["budget_heads"] = words.labels.budget_heads;
    json["budget_gain"] = words.labels.budget_gain;
    json["seed"] = words.labels.seed;
  }
  json["predicted"] = labelled.predicted;
  return json;
}

/// Labels the examples and prints the scores.
LabelledExamples measure(const EvalWords& words, const std::string& name, const ClassifierFolder& model,
                         const LabelledDataset& data) {
  const Timer timer;
  auto labelled = label_all(model, data, words.labels, "eval");
  const double seconds = timer.seconds();
  const auto scores = score(labelled);
  if (words.json) {
    fmt::print("{}\n", to_text(to_json(words, name, model, labelled, scores, seconds)));
  } else {
    if (!words.against.empty()) print_row("model", plain_line(name));
    print_table(words, model, labelled, scores, seconds);
  }
  flush_output();
  return labelled;
}

void print_paired(const PairedScore& paired) {
  print_row("difference", paired.items < 2 ? fmt::format("{:+.4f} in accuracy, of one example", paired.difference)
                                           : fmt::format("{:+.4f} in accuracy, standard error {:.4f} over {} examples",
                                                         paired.difference, paired.standard_error, paired.items));
  print_row("95% interval", paired.items < 2 ? "none: one example" : interval_text(paired.interval, 4));
  print_row("only one right",
            fmt::format("{} examples by the first, {} by the second; McNemar's exact test: p = {:.3g}", paired.more_a,
                        paired.more_b, paired.p));
}

}  // namespace

void run_classification(EvalWords& words) {
  PRISM_CHECK(words.files.size() == 1, "eval", "expected one data folder for classification; found {}; name one.",
              words.files.size());
  const LabelledDataset data(words.files[0], words.split);
  const auto load = [&](const std::string& name) { return load_classifier_for(data, name, words.compute, "eval"); };
  const auto model = load(words.model);
  if (words.against.empty()) {
    measure(words, words.model, model, data);
    return;
  }
  const auto other = load(words.against);
  const auto first = measure(words, words.model, model, data);
  if (!words.json) fmt::print("\n");
  EvalWords unchanged = words;
  unchanged.labels.budget_heads = unchanged.labels.budget_gain = "own";
  const auto second = measure(unchanged, words.against, other, data);
  const auto paired = paired_score(right_answers(first), right_answers(second));
  if (!words.json) {
    fmt::print("\n");
    return print_paired(paired);
  }
  Json json = difference_to_json(words.model, words.against, "accuracy difference", paired.difference,
                                 paired.standard_error, paired.interval, paired.items);
  json.update(
      {{"examples", paired.items}, {"only_model", paired.more_a}, {"only_against", paired.more_b}, {"p", paired.p}});
  fmt::print("{}\n", to_text(json));
}

}  // namespace prism
