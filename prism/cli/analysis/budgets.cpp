// prism analyse budgets: how many heads a classifier's head budgets use, which, and what that saves.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "prism/analysis/budget_groups.h"
#include "prism/analysis/text_budgets.h"
#include "prism/bench/budget_savings.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"
#include "prism/cli/labelled_reading.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/text/printable.h"
#include "prism/data/labelled/tokenize_labelled.h"

namespace prism {
namespace {

constexpr const char* kBudgetsHelp = R"(
A head budget reads a text and gives each layer a share of heads s and a probability p for each head. The layer computes
the max(1, floor(s H)) heads with the largest p. With --data, the tables show s, the entropy of p, the share of heads
that were computed, and how often each head was computed: for all examples, by class, and by thirds of length.
--difficulty also divides the examples into thirds by their loss under another model. The model and one of the same size
without budgets are then timed in turn on at most 8 batches, spread over all lengths; --no-timing skips this.

With --text (repeat it for each field, such as premise and hypothesis), the table shows what each layer decides for this
text, and the pictures are attention maps of the heads with the largest p; files of computed heads end in -computed.

  prism analyse budgets runs/budget --data data/snli --difficulty runs/uniform --figures budgets
  prism analyse budgets runs/budget --data data/snli --json > budgets.jsonl
  prism report runs/budget --analysis budgets.jsonl
  prism analyse budgets runs/budget --text "A man is playing." --text "A man is sleeping." --figures maps
)";

struct BudgetsWords {
  std::string model, data, difficulty;
  std::optional<std::string> split;  ///< std::nullopt: test
  std::vector<std::string> texts;
  std::optional<int64_t> maps;  ///< std::nullopt: 4
  bool timing = true;
  LabelOptions labels;
  SavingsOptions savings;
  ComputeOptions compute;
  OutputWords output;
};

void add_options(CLI::App& app, BudgetsWords& words) {
  app.add_option("MODEL", words.model,
                 "a classifier with head budgets: a model folder, or a run folder (its last checkpoint)")
      ->required();
  auto* data = app.add_option("--data", words.data, "folder of labelled examples made by prism tokenize --label");
  data->type_name("FOLDER");
  app.add_option("--split", words.split, "examples to read: test, valid or train")
      ->needs(data)
      ->type_name("NAME")
      ->default_str("test");
  app.add_option("--examples", words.labels.examples, "read only the first N examples; 0: all")
      ->needs(data)
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--batch", words.labels.batch, "texts per forward pass")
      ->needs(data)
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--difficulty", words.difficulty, "another classifier, whose loss on an example is its difficulty")
      ->needs(data)
      ->type_name("MODEL");
  auto* rounds = app.add_option("--rounds", words.savings.rounds, "timed passes of each model");
  rounds->needs(data)->check(CLI::Range(1, 100000))->capture_default_str();
  app.add_flag("!--no-timing", words.timing, "skip the timing")->needs(data)->excludes(rounds);
  auto* text = app.add_option("--text", words.texts, "a text to read, one --text for each of its fields");
  text->allow_extra_args(false);
  app.add_option("--maps", words.maps,
                 "number of heads per layer, those with the largest p, whose attention maps of the --text are shown by "
                 "--figures and --json")
      ->needs(text)
      ->check(CLI::Range(0, 64))
      ->type_name("N")
      ->default_str("4");
  add_output_options(app, words.output);
  add_weights_option(app, words.compute);
  add_compute_options(app, words.compute);
}

ExampleTraits traits_of(const BudgetsWords& words, const ClassifierFolder& model, const LabelledDataset& data,
                        const LabelledExamples& labelled, const std::optional<ClassifierFolder>& other) {
  ExampleTraits traits{.labels = labelled.labels, .classes = model.scheme.classes, .lengths = {}, .losses = {}};
  const int64_t context = model.classifier->config().context;  // which longer texts are cut to
  for (int64_t i = 0; i < std::ssize(labelled.labels); ++i)
    traits.lengths.push_back(static_cast<double>(std::min(std::ssize(data.tokens(i)), context)));
  if (other) traits.losses = label_all(*other, data, words.labels, "analyse").nats;
  return traits;
}

/// The lines of the examples of --data. @param other  the model of --difficulty.
void read_examples(const BudgetsWords& words, const ClassifierFolder& model, const LabelledDataset& data,
                   const std::optional<ClassifierFolder>& other, AnalysisLines& lines) {
  const auto labelled = label_all(model, data, words.labels, "analyse");
  PRISM_CHECK(!other || labelled.labels.size() >= 3, "analyse",
              "expected at least 3 examples, one for each third, with --difficulty; found {}; read more, or leave out "
              "the option.",
              labelled.labels.size());
  tell_cut(labelled.cut, std::ssize(labelled.labels), model);
  const auto reading = describe_examples(words.data, words.split.value_or("test"), std::ssize(labelled.labels));
  const auto add = [&](const char* kind, const Json& fields) {
    Json line = {{"reading", reading}, {"kind", kind}};
    line.update(fields);
    lines.add(line);
  };
  for (const auto& group : groups_of(traits_of(words, model, data, labelled, other)))
    for (const auto& layer : summarise_budgets(labelled.budgets, group)) add("layer", fields_to_json(layer));
  if (!words.timing) return;
  auto options = words.savings;
  options.batch = words.labels.batch;
  options.examples = words.labels.examples;
  add("savings", fields_to_json(bench_budget_savings(model.classifier, data, options)));
}

/// The lines of the text of --text.
void read_text(const BudgetsWords& words, const ClassifierFolder& model, AnalysisLines& lines) {
  const auto texts = read_text_fields(words.texts, model.scheme, "analyse");
  const auto tokens = encode_texts(texts, *model.tokenizer);
  tell_cut(static_cast<int64_t>(std::ssize(tokens) > model.classifier->config().context), 1, model);
  const auto found = read_text_budgets(model.classifier, tokens, words.maps.value_or(4));
  const std::string reading = fmt::format("\"{}\"", plain_line(fmt::format("{}", fmt::join(texts, " | "))));
  for (const auto& layer : found.layers) {
    Json line = {
        {"reading", reading}, {"kind", "text"}, {"label", model.scheme.classes[static_cast<size_t>(found.predicted)]}};
    line.update(fields_to_json(layer));
    lines.add(line);
  }
  std::vector<std::string> shown;
  for (const int64_t token : found.tokens) shown.emplace_back(model.tokenizer->bytes(static_cast<int32_t>(token)));
  for (const auto& map : found.maps) {
    Json line = {{"reading", reading}, {"kind", "map"}, {"tokens", shown}};
    line.update(fields_to_json(map));
    lines.add(line);
  }
}

}  // namespace

int run_analyse_budgets(const Arguments& arguments) {
  CLI::App app(std::string("Measure how many and which heads head budgets use, and what that saves.\n") + kBudgetsHelp,
               "prism analyse budgets");
  BudgetsWords words;
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  PRISM_CHECK(!words.data.empty() || !words.texts.empty(), "analyse",
              "expected --data, a folder of labelled examples, or --text; found neither; give one.");
  PRISM_CHECK(!words.maps || words.output.json || !words.output.figures.empty(), "analyse",
              "expected --figures or --json with --maps; found neither; add one, or leave out --maps.");
  const torch::NoGradGuard no_gradients;
  const auto folder = make_figures_folder(words.output.figures);
  start_compute(words.compute.threads, words.compute.device);
  catch_stop_signals();
  std::optional<LabelledDataset> data;
  if (!words.data.empty()) data.emplace(words.data, words.split.value_or("test"));
  const auto model = data ? load_classifier_for(*data, words.model, words.compute, "analyse")
                          : load_classifier(words.model, words.compute);
  PRISM_CHECK(layers_with_budgets(model.classifier->config()) > 0, "analyse",
              "expected a classifier with head budgets; found none in the layers of {}; name another model.",
              words.model);
  if (!words.texts.empty()) check_has_tokenizer(model, "analyse");
  std::optional<ClassifierFolder> other;
  if (!words.difficulty.empty()) other = load_classifier_for(*data, words.difficulty, words.compute, "analyse");
  AnalysisLines lines({{"analysis", "budgets"}, {"model", words.model}});
  if (data) read_examples(words, model, *data, other, lines);
  if (!words.texts.empty()) read_text(words, model, lines);
  lines.print(words.output);
  return 0;
}

}  // namespace prism
