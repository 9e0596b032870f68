#include "prism/evaluation/perplexity.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "prism/core/error.h"
#include "prism/core/text/counted.h"
#include "prism/evaluation/tasks/items.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/evaluation/tasks/samples.h"
#include "prism/evaluation/windows.h"

namespace prism {
namespace {

double perplexity(double nats, int64_t units) {
  return units == 0 ? std::numeric_limits<double>::quiet_NaN() : std::exp(nats / static_cast<double>(units));
}

}  // namespace

double PerplexityResult::token_perplexity() const {
  return perplexity(nats, tokens);
}

double PerplexityResult::word_perplexity() const {
  return perplexity(nats, words);
}

double PerplexityResult::byte_perplexity() const {
  return perplexity(nats, bytes);
}

double PerplexityResult::bits_per_byte() const {
  return nats / (static_cast<double>(bytes) * std::numbers::ln2);
}

std::vector<std::string> PerplexityResult::conventions() const {
  std::string cutting =
      fmt::format("windows of {} every {}, each token predicted once", counted(window, "token"), stride);
  if (!cut) {
    cutting += " (no document is longer than a window)";
  } else if (stride == window) {
    cutting += " (the first prediction of a window sees one token, the last sees the whole window)";
  } else {
    cutting +=
        fmt::format(" (after a document's first window, predictions see {} to {} tokens)", window - stride + 1, window);
  }
  std::vector<std::string> conventions = {cutting,
                                          opening.empty()
                                              ? "a document's first token is not predicted"
                                              : fmt::format("{} opens every document and is not predicted", opening),
                                          "words are separated by white space; bytes are those of the text in UTF-8"};
  if (has_budgets)
    conventions.emplace_back(
        "head budgets read a window's tokens up to the one that makes its first prediction; in a document's first "
        "window that is one token");
  return conventions;
}

Task perplexity_task(const TextWindowOptions& options, int64_t context, bool has_budgets) {
  const auto complete = complete_windows(options, context, has_budgets, kEvaluation);
  auto task = find_tasks({kPerplexity}).at(0);
  task.window = complete.window;
  task.stride = complete.stride;
  return task;
}

PerplexityResult perplexity_of(const Task& task, std::span<const TaskItem> items, std::span<const ItemAnswers> answers,
                               const TaskModel& model) {
  const auto opening = model.tokenizer().special_ids().opening;
  PerplexityResult result;
  result.window = task.window;
  result.stride = task.stride;
  result.has_budgets = layers_with_budgets(model.decoder()->config()) > 0;
  if (opening) result.opening = model.tokenizer().bytes(*opening);
  for (size_t i = 0; i < items.size(); ++i) {
    const DocumentScore score{0 - answers[i].answers.at(0).log_likelihood, answers[i].tokens};
    result.documents.push_back(score);
    result.nats += score.nats;
    result.tokens += score.tokens;
    result.words += items[i].words;
    result.bytes += items[i].bytes;
    result.windows += std::ssize(cut_windows(0, score.tokens + 1, task.window, task.stride));
    result.cut = result.cut || score.tokens > task.window;
  }
  PRISM_CHECK(
      result.tokens > 0, kEvaluation,
      "expected a document of at least 2 tokens, the first of which is not predicted; found none; name more text.");
  return result;
}

PerplexityResult evaluate_perplexity(Decoder decoder, const Tokenizer& tokenizer, TextSource& text,
                                     const TextWindowOptions& options, Prefill* prefill) {
  const bool has_budgets = layers_with_budgets(decoder->config()) > 0;
  const auto task = perplexity_task(options, decoder->config().context, has_budgets);
  const auto items = text_items(task, text, options.documents);
  TaskModel model(decoder, tokenizer, {.prefill = prefill});
  const auto answers = answer_all(model, task, items, /*file=*/nullptr, {}, {});
  return perplexity_of(task, items, answers, model);
}

}  // namespace prism
