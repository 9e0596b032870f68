// prism analyse budgets: how many heads a classifier's head budgets use, which, and what that saves.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/analysis/attention/attention_maps.h"
#include "prism/analysis/budget_groups.h"
#include "prism/bench/budget_savings.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"
#include "prism/cli/labelled_reading.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/text/printable.h"
#include "prism/data/labelled/tokenize_labelled.h"
#include "prism/kernels/to_vector.h"

namespace prism {
namespace {

constexpr const char* kBudgetsHelp = R"(
A head budget gives each text a share of heads s and a choice of heads p, layer by layer; the max(1, floor(s H)) heads
with the largest p are computed. With --data, the tables show the mean and standard deviation of s, the share of heads
that are computed, the entropy of p, and how often each head is computed: over all examples, by class, for the
shortest, middle and longest third of texts and, with --difficulty, for the easy, middle and hard third, by the loss of
another model on them. Then both this model
and one of the same size without budgets are timed in turn on texts of all lengths; --no-timing leaves this out.

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
  app.add_option("--rounds", words.savings.rounds, "timed passes of each model")
      ->needs(data)
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_flag("!--no-timing", words.timing, "leave out what budgets save")->needs(data);
  auto* text = app.add_option("--text", words.texts, "a text to read, one --text for each of its fields");
  text->allow_extra_args(false);
  app.add_option("--maps", words.maps,
                 "with --figures or --json: attention maps of --text in each layer, of the heads with the largest p")
      ->needs(text)
      ->check(CLI::Range(0, 64))
      ->type_name("N")
      ->default_str("4");
  add_output_options(app, words.output);
  add_compute_options(app, words.compute);
}

std::vector<ExampleGroup> groups_of(const BudgetsWords& words, const ClassifierFolder& model,
                                    const LabelledDataset& data, const LabelledExamples& labelled) {
  std::vector<ExampleGroup> groups = {all_examples(static_cast<int64_t>(labelled.labels.size()))};
  const auto append = [&](std::vector<ExampleGroup> more) {
    for (auto& group : more) groups.push_back(std::move(group));
  };
  append(groups_by_class(labelled.labels, model.scheme.classes));
  std::vector<double> lengths;
  for (size_t i = 0; i < labelled.labels.size(); ++i)
    lengths.push_back(static_cast<double>(data.tokens(static_cast<int64_t>(i)).size()));
  append(groups_by_third("length", {"short", "middle", "long"}, lengths));
  if (words.difficulty.empty()) return groups;
  const auto other = load_classifier_for(data, words.difficulty, words.compute, "analyse");
  append(
      groups_by_third("difficulty", {"easy", "middle", "hard"}, label_all(other, data, words.labels, "analyse").nats));
  return groups;
}

/// The lines of the examples of --data.
void read_examples(const BudgetsWords& words, const ClassifierFolder& model, const LabelledDataset& data,
                   AnalysisLines& lines) {
  const auto labelled = label_all(model, data, words.labels, "analyse");
  const auto reading = describe_examples(words.data, words.split.value_or("test"), std::ssize(labelled.labels));
  for (const auto& group : groups_of(words, model, data, labelled))
    for (const auto& layer : summarise_budgets(labelled.budgets, group)) {
      Json line = {{"reading", reading}, {"kind", "layer"}};
      line.update(fields_to_json(layer));
      lines.add(line);
    }
  if (!words.timing) return;
  auto options = words.savings;
  options.batch = words.labels.batch;
  options.examples = words.labels.examples;
  Json line = {{"reading", reading}, {"kind", "savings"}};
  line.update(fields_to_json(bench_budget_savings(model.classifier, data, options)));
  lines.add(line);
}

std::vector<int64_t> heads_in(const torch::Tensor& kept_H) {
  std::vector<int64_t> heads;
  for (int64_t h = 0; h < kept_H.size(0); ++h)
    if (kept_H[h].item<bool>()) heads.push_back(h);
  return heads;
}

/// The lines of the text of --text.
void read_text(const BudgetsWords& words, const ClassifierFolder& model, AnalysisLines& lines) {
  const auto texts = read_text_fields(words.texts, model.scheme, "analyse");
  const auto tokens = encode_texts(texts, *model.tokenizer);
  auto batch = pad_texts({tokens}, model.classifier->config().context);
  ExampleTensors tensors(batch);
  Budgets budgets(model.classifier->config().budget_tau);
  AttentionMapProbe probe([&](size_t layer, int64_t) {
    // A layer's budget decides before its attention.
    if (layer >= budgets.decisions().size() || !budgets.decisions()[layer].share_B.defined())
      return std::vector<int64_t>();
    const auto& p_H = budgets.decisions()[layer].probability_BH[0];
    const auto order = std::get<1>(at::sort(p_H, /*stable=*/true, 0, /*descending=*/true));
    std::vector<int64_t> heads;
    for (int64_t i = 0; i < std::min(words.maps.value_or(4), p_H.size(0)); ++i)
      heads.push_back(order[i].item<int64_t>());
    return heads;
  });
  tensors.context.budgets = &budgets;
  tensors.context.probe = &probe;
  const auto hidden = model.classifier(tensors.tokens_BT, tensors.context);
  const auto best = model.classifier->head.logits(hidden, tensors.context.lengths_B)[0].argmax().item<int64_t>();
  const std::string reading = fmt::format("\"{}\"", plain_line(fmt::format("{}", fmt::join(texts, " | "))));
  for (size_t l = 0; l < budgets.decisions().size(); ++l) {
    const auto& [share_B, probability_BH, kept_BH] = budgets.decisions()[l];
    if (!share_B.defined()) continue;
    lines.add({{"reading", reading},
               {"kind", "text"},
               {"layer", l},
               {"label", model.scheme.classes[static_cast<size_t>(best)]},
               {"share", share_B[0].item<double>()},
               {"probability", to_doubles(probability_BH[0])},
               {"kept", heads_in(kept_BH[0])}});
  }
  std::vector<std::string> shown;
  for (int64_t t = 0; t < batch.lengths[0]; ++t)
    shown.emplace_back(model.tokenizer->bytes(static_cast<int32_t>(batch.tokens[static_cast<size_t>(t)])));
  for (const auto& map : probe.maps()) {
    const auto& decision = budgets.decisions()[static_cast<size_t>(map.layer)];
    lines.add({{"reading", reading},
               {"kind", "map"},
               {"layer", map.layer},
               {"head", map.head},
               {"probability", decision.probability_BH[0][map.head].item<double>()},
               {"is_kept", decision.kept_BH[0][map.head].item<bool>()},
               {"tokens", shown},
               {"weights", rows_of(map)}});
  }
}

}  // namespace

int run_analyse_budgets(const Arguments& arguments) {
  CLI::App app(std::string("Measure how many heads head budgets use, which, and what that saves.\n") + kBudgetsHelp,
               "prism analyse budgets");
  BudgetsWords words;
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  PRISM_CHECK(!words.data.empty() || !words.texts.empty(), "analyse",
              "expected --data, a folder of labelled examples, or --text; found neither; give one.");
  PRISM_CHECK(!words.maps || words.output.json || !words.output.figures.empty(), "analyse",
              "expected --figures or --json with --maps; found neither; add one, or leave out --maps.");
  const torch::NoGradGuard no_gradients;
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
  AnalysisLines lines({{"analysis", "budgets"}, {"model", words.model}});
  if (data) read_examples(words, model, *data, lines);
  if (!words.texts.empty()) read_text(words, model, lines);
  lines.print(words.output);
  return 0;
}

}  // namespace prism
