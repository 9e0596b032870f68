#include "prism/cli/evaluation/perplexity_output.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "prism/cli/evaluation/task_output.h"
#include "prism/core/progress.h"
#include "prism/core/text/printable.h"
#include "prism/evaluation/paired.h"

namespace prism {
namespace {

Json to_json(const EvalWords& words, const PerplexityResult& result, const PerplexityCourse& course) {
  // NaN (e.g. without words) and infinity become null.
  Json json = {{"task", kPerplexity},
               {"model", course.model},
               {"files", words.files},
               {"token_perplexity", result.token_perplexity()},
               {"word_perplexity", result.word_perplexity()},
               {"byte_perplexity", result.byte_perplexity()},
               {"bits_per_byte", result.bits_per_byte()},
               {"nats", result.nats},
               {"tokens", result.tokens},
               {"words", result.words},
               {"bytes", result.bytes},
               {"documents", result.documents.size()},
               {"windows", result.windows},
               {"window", result.window},
               {"stride", result.stride},
               {"opening", result.opening},
               {"context", course.context},
               {"rope_scaling", words.compute.context.rope_scaling},
               {"weights", words.compute.weights},
               {"dtype", course.dtype},
               {"conventions", result.conventions()},
               {"prefill", course.prefill}};
  if (course.seconds > 0) json["seconds"] = course.seconds;
  return json;
}

void print_figure(const char* name, double value) {
  if (std::isnan(value)) return print_row(name, "none");
  print_row(name, value < 1e6 ? fmt::format("{:.4f}", value) : fmt::format("{:.4e}", value));
}

void print_table(const PerplexityResult& result, const PerplexityCourse& course) {
  print_figure("token perplexity", result.token_perplexity());
  print_figure("word perplexity", result.word_perplexity());
  print_figure("byte perplexity", result.byte_perplexity());
  print_figure("bits per byte", result.bits_per_byte());
  print_row("tokens", fmt::to_string(result.tokens));
  print_row("words", fmt::to_string(result.words));
  print_row("bytes", fmt::to_string(result.bytes));
  print_row("documents", fmt::to_string(result.documents.size()));
  print_row("windows", fmt::to_string(result.windows));
  if (!course.attention.empty()) print_row("attention", course.attention);
  const auto speed = [&] {
    return fmt::format(", {}, {} tokens/s", short_duration(course.seconds),
                       short_number(static_cast<double>(result.tokens) / course.seconds));
  };
  print_row("computed in", course.dtype + (course.seconds > 0 ? speed() : ""));
  const char* name = "convention";
  for (const auto& rule : result.conventions()) print_row(std::exchange(name, ""), rule);
}

Json to_json(const PairedLoss& paired, const PerplexityResult& a, const PerplexityResult& b) {
  Json by_document = Json::array();
  for (size_t i = 0; i < a.documents.size(); ++i)
    by_document.push_back(
        {{"tokens", a.documents[i].tokens}, {"nats", a.documents[i].nats}, {"nats_against", b.documents[i].nats}});
  return {{"documents", paired.documents}, {"better", paired.better}, {"by_document", std::move(by_document)}};
}

void print_paired(const EvalWords& words, const PairedLoss& paired) {
  print_row("difference", fmt::format("{:+.5f} nats per token{}", paired.difference,
                                      paired.documents < 2 ? ", of one document"
                                                           : fmt::format(", standard error {:.5f} over {} documents",
                                                                         paired.standard_error, paired.documents)));
  print_row("95% interval", paired.documents >= 2          ? interval_text(paired.interval, 5)
                            : words.text.separator.empty() ? "none: one document; give --separator"
                                                           : "none: one document");
  print_row("better on", fmt::format("{} of {} documents", paired.better, paired.documents));
}

}  // namespace

void print_perplexity(const EvalWords& words, const PerplexityResult& result, const PerplexityCourse& course) {
  if (words.json) {
    fmt::print("{}\n", to_text(to_json(words, result, course)));
  } else {
    print_table(result, course);
  }
}

void print_perplexity_difference(const EvalWords& words, const std::string& model, const std::string& against,
                                 const PerplexityResult& a, const PerplexityResult& b,
                                 const std::vector<double>& divergences) {
  const auto paired = paired_loss(a.documents, b.documents);
  if (!words.json) {
    print_paired(words, paired);
    if (!divergences.empty()) print_row("KL(second||first)", divergence_text(divergences));
    return;
  }
  Json json = difference_to_json(model, against, "perplexity difference", paired.difference, paired.standard_error,
                                 paired.interval, paired.documents);
  json.update(to_json(paired, a, b));
  if (!divergences.empty()) json["divergence"] = divergence_to_json(divergences);
  fmt::print("{}\n", to_text(json));
}

}  // namespace prism
