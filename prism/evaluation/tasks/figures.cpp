#include "prism/evaluation/tasks/figures.h"

#include <algorithm>
#include <map>

#include "prism/core/error.h"
#include "prism/core/numbers/item_figure.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/template/library/text_pieces.h"
#include "prism/template/values/characters.h"

namespace prism {
namespace {

/// 1 if the right choice has the largest log-likelihood per unit of its length.
double is_right(const TaskItem& item, const ItemAnswers& answers, double (*length)(const std::string&)) {
  std::vector<double> values;
  for (size_t i = 0; i < answers.answers.size(); ++i)
    values.push_back(answers.answers[i].log_likelihood / length(item.choices.at(i)));
  return std::max_element(values.begin(), values.end()) - values.begin() == item.gold ? 1 : 0;
}

double accuracy(const TaskItem& item, const ItemAnswers& answers) {
  if (item.choices.empty()) return answers.answers.at(0).is_greedy ? 1 : 0;
  return is_right(item, answers, [](const std::string&) { return 1.0; });
}

double accuracy_by_characters(const TaskItem& item, const ItemAnswers& answers) {
  return is_right(item, answers,
                  [](const std::string& text) { return static_cast<double>(jinja::count_characters(text)); });
}

double accuracy_by_bytes(const TaskItem& item, const ItemAnswers& answers) {
  return is_right(item, answers, [](const std::string& text) { return static_cast<double>(text.size()); });
}

double exact_match(const TaskItem& item, const ItemAnswers& answers) {
  const auto written = jinja::stripped(answers.answers.at(0).text);
  return std::ranges::any_of(item.targets,
                             [&](const std::string& target) { return written == jinja::stripped(target); });
}

/// The targets that occur in an answer, regardless of case. Control characters in it count as line feeds.
int64_t contained_targets(const TaskItem& item, const ItemAnswers& answers) {
  auto written = jinja::lower_case(answers.answers.at(0).text);
  for (char& each : written)
    if (static_cast<unsigned char>(each) < 0x20) each = '\n';
  return std::ranges::count_if(item.targets, [&](const std::string& target) {
    return written.find(jinja::lower_case(target)) != std::string::npos;
  });
}

double contained_share(const TaskItem& item, const ItemAnswers& answers) {
  if (item.targets.empty()) return 0;
  return static_cast<double>(contained_targets(item, answers)) / static_cast<double>(item.targets.size());
}

double percent_of_targets(const TaskItem& item, const ItemAnswers& answers) {
  return 100 * contained_share(item, answers);
}

double percent_if_any(const TaskItem& item, const ItemAnswers& answers) {
  return contained_targets(item, answers) > 0 ? 100 : 0;
}

double log_likelihood(const TaskItem&, const ItemAnswers& answers) {
  return answers.answers.at(0).log_likelihood;
}

/// What an item adds to a figure.
struct FigureKind {
  double (*score)(const TaskItem&, const ItemAnswers&);
  double (*units)(const TaskItem&, const ItemAnswers&);
  bool has_error = true;
};

double one(const TaskItem&, const ItemAnswers&) {
  return 1;
}
double words(const TaskItem& item, const ItemAnswers&) {
  return static_cast<double>(item.words);
}
double bytes(const TaskItem& item, const ItemAnswers&) {
  return static_cast<double>(item.bytes);
}
double tokens(const TaskItem&, const ItemAnswers& answers) {
  return static_cast<double>(answers.tokens);
}

const FigureKind& find_figure(const std::string& name) {
  static const std::map<std::string, FigureKind> kinds = {
      {"acc", {accuracy, one}},
      {"acc_norm", {accuracy_by_characters, one}},
      {"acc_bytes", {accuracy_by_bytes, one}},
      {"exact_match", {exact_match, one}},
      {"contains", {contained_share, one}},
      {"string_match_all", {percent_of_targets, one}},
      {"string_match_part", {percent_if_any, one}},
      {"perplexity", {log_likelihood, one}},
      {"token_perplexity", {log_likelihood, tokens, false}},
      {"word_perplexity", {log_likelihood, words, false}},
      {"byte_perplexity", {log_likelihood, bytes, false}},
      {"bits_per_byte", {log_likelihood, bytes, false}},
  };
  return kinds.at(name);
}

ItemScores scores_of(const FigureKind& kind, std::span<const TaskItem> items, std::span<const ItemAnswers> answers) {
  PRISM_ASSERT(items.size() == answers.size() && !items.empty(), kEvaluation, "{} items and {} answers", items.size(),
               answers.size());
  ItemScores found;
  for (size_t i = 0; i < items.size(); ++i) {
    found.scores.push_back(kind.score(items[i], answers[i]));
    found.units.push_back(kind.units(items[i], answers[i]));
  }
  return found;
}

}  // namespace

std::vector<double> item_scores(const Task& task, const TaskItem& item, const ItemAnswers& answers) {
  std::vector<double> scores;
  for (const auto& name : task.figures) scores.push_back(find_figure(name).score(item, answers));
  return scores;
}

std::vector<double> item_units(const Task& task, const TaskItem& item, const ItemAnswers& answers) {
  std::vector<double> units;
  for (const auto& name : task.figures) units.push_back(find_figure(name).units(item, answers));
  return units;
}

std::vector<Figure> figures_of(const Task& task, std::span<const TaskItem> items,
                               std::span<const ItemAnswers> answers) {
  std::vector<Figure> figures;
  for (const auto& name : task.figures) {
    const auto& kind = find_figure(name);
    const auto all = scores_of(kind, items, answers);
    Figure figure{.name = name, .value = item_figure(name, all)};
    if (kind.has_error && items.size() > 1) figure.standard_error = item_figure_error(name, all);
    figures.push_back(figure);
  }
  return figures;
}

Figure group_figure(const std::vector<Figure>& parts) {
  std::vector<double> values, errors;
  for (const auto& each : parts) {
    values.push_back(each.value);
    errors.push_back(each.standard_error);
  }
  return {.name = parts.at(0).name, .value = mean_of(values), .standard_error = error_of_mean(errors)};
}

std::vector<FigureDifference> differences_of(const Task& task, std::span<const TaskItem> items,
                                             std::span<const ItemAnswers> a, std::span<const ItemAnswers> b) {
  std::vector<FigureDifference> differences;
  for (const auto& name : task.figures) {
    const auto& kind = find_figure(name);
    differences.push_back({name, paired_figure(name, scores_of(kind, items, a), scores_of(kind, items, b))});
  }
  return differences;
}

}  // namespace prism
