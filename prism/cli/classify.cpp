// prism classify: labels texts with a classifier.
#include <ATen/Functions.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/attention/budget/budgets.h"
#include "prism/cli/command.h"
#include "prism/cli/labelled_reading.h"
#include "prism/cli/options/compute_options.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/data/byte_stream.h"
#include "prism/data/labelled/examples.h"
#include "prism/data/labelled/tokenize_labelled.h"
#include "prism/evaluation/classification.h"
#include "prism/kernels/to_vector.h"

namespace prism {
namespace {

constexpr const char* kClassifyExamples = R"(
Prints a line for each text, in order: the most probable class, its probability, and the beginning of the text. If the
model has head budgets, the line also states the number of heads computed in each layer. --json prints one object per
text: label, probabilities, tokens and, for each layer, s (the share of heads asked for) and the heads computed.

A .txt file and standard input hold one text per line, without blank lines; the two characters \n stand for a line
break. In .csv and .jsonl files, the texts are in the columns that the model was trained on, unless --text-fields names
others. Columns of a .csv file that were given by number have no row of names, which would be labelled as a text. A text
of several fields, such as premise and hypothesis, needs such a file, or one --text for each field, of which one may be
empty. Files may be compressed as .gz, .xz or .zst.

  prism classify runs/news headlines.txt
  prism classify runs/news test.csv --json > predicted.jsonl
  prism classify runs/snli --text 'A man is playing guitar.' --text 'A man is sleeping.'
  tail -f feed.txt | prism classify runs/news -
)";

struct ClassifyWords {
  std::string model, file, format = "auto";
  std::vector<std::string> texts, text_fields;
  int64_t batch = 0;
  ComputeOptions compute;
  bool json = false;
};

using Texts = std::vector<std::string>;  ///< the fields of one text

/// Returns the next text, std::nullopt at the end.
using NextText = std::function<std::optional<Texts>()>;

void add_options(CLI::App& app, ClassifyWords& words) {
  app.add_option("MODEL", words.model, "a classifier: a model folder, or a run folder (its last checkpoint)")
      ->required();
  auto* file = app.add_option("FILE", words.file, "file of texts, or - for standard input");
  auto* text =
      app.add_option("--text", words.texts, "a text to classify, instead of FILE; repeat it for each further field")
          ->allow_extra_args(false)
          ->excludes(file);
  app.add_option("--format", words.format, "txt, csv, jsonl, or auto: by the file name's ending; standard input is txt")
      ->type_name("NAME")
      ->excludes(text)
      ->capture_default_str();
  app.add_option(
         "--text-fields", words.text_fields,
         "columns of the text in a .csv or .jsonl file, with commas between them; default: those of the training")
      ->type_name("COLUMN,...")
      ->delimiter(',')
      ->excludes(text)
      ->allow_extra_args(false);
  app.add_option("--batch", words.batch,
                 "texts per forward pass; default: 32 for a file, 1 for a pipe or a terminal, so that no text waits")
      ->type_name("N")
      ->check(CLI::Range(1, 65536));
  app.add_flag("--json", words.json, "print one JSON object per text");
  add_weights_option(app, words.compute);
  add_compute_options(app, words.compute);
}

/// The texts of --text as the only example.
NextText single_text(const ClassifyWords& words, const LabelScheme& scheme) {
  return [left = std::optional(read_text_fields(words.texts, scheme, "classify"))]() mutable {
    return std::exchange(left, std::nullopt);
  };
}

NextText texts_of_file(const ClassifyWords& words, const LabelScheme& scheme) {
  PRISM_CHECK(words.file == "-" || is_there(words.file), "classify",
              "expected a file of texts; found nothing at {}; name another.", plain_line(words.file));
  PRISM_CHECK(!std::filesystem::is_directory(words.file), "classify",
              "expected a file of texts; found the folder {}; name a file.", plain_line(words.file));
  PRISM_CHECK(std::find(words.text_fields.begin(), words.text_fields.end(), "") == words.text_fields.end(), "classify",
              "--text-fields: expected names of columns; found an empty one; leave it out.");
  const std::string name = without_packed_ending(words.file);
  const bool is_txt =
      words.format == "txt" || (words.format == "auto" && (words.file == "-" || name.ends_with(".txt")));
  ExampleOptions options{.format = is_txt ? "txt" : words.format, .words = scheme.words};
  PRISM_CHECK(
      !is_txt || words.text_fields.empty(), "classify",
      "expected --text-fields only with .csv and .jsonl files; found it with lines of text; leave it out, or give "
      "--format.");
  options.text_fields = is_txt ? Texts{"1"} : words.text_fields.empty() ? scheme.text_fields : words.text_fields;
  PRISM_CHECK(
      !options.text_fields.empty(), "classify",
      "expected --text-fields, because the model's folder does not say which columns its texts come from; found "
      "none; name them.");
  const size_t expected = text_fields_of(scheme);
  PRISM_CHECK(options.text_fields.size() == expected, "classify",
              "expected texts of {} field{}, as in the training ({}); found {}; {}.", expected,
              expected == 1 ? "" : "s", join_names(scheme.text_fields), options.text_fields.size(),
              is_txt ? "give them in a .csv or .jsonl file" : "name as many --text-fields");
  auto source = std::make_shared<ExampleSource>(Texts{words.file}, options);
  return [source]() -> std::optional<Texts> {
    auto example = source->next();
    if (!example) return std::nullopt;
    return std::move(example->texts);
  };
}

NextText texts_of(const ClassifyWords& words, const LabelScheme& scheme) {
  return words.texts.empty() ? texts_of_file(words, scheme) : single_text(words, scheme);
}

void print_json(const LabelScheme& scheme, const Classified& classified, int64_t row, int64_t tokens, bool is_cut) {
  const auto log_p = to_doubles(classified.log_probability_BC[row]);
  Json probabilities = Json::object();
  for (size_t c = 0; c < log_p.size(); ++c) probabilities[scheme.classes[c]] = std::exp(log_p[c]);
  const auto best = static_cast<size_t>(classified.predicted[static_cast<size_t>(row)]);
  Json json = {
      {"label", scheme.classes[best]}, {"probabilities", probabilities}, {"tokens", tokens}, {"is_cut", is_cut}};
  for (const auto& layer : classified.budgets) {
    json["head_share"].push_back(layer.share_B.defined() ? Json(layer.share_B[row].item<double>()) : Json());
    json["heads"].push_back(layer.kept_BH.defined() ? Json(kept_heads(layer.kept_BH[row])) : Json());
  }
  fmt::print("{}\n", to_text(json));
}

void print_line(const LabelScheme& scheme, const Classified& classified, int64_t row, const Texts& texts,
                size_t label_width) {
  const auto best = static_cast<size_t>(classified.predicted[static_cast<size_t>(row)]);
  const double probability = std::exp(to_doubles(classified.log_probability_BC[row])[best]);
  std::string heads;
  for (const auto& layer : classified.budgets)
    heads += (heads.empty() ? "  heads " : " ") +
             (layer.kept_BH.defined() ? std::to_string(layer.kept_BH[row].sum().item<int64_t>()) : std::string("all"));
  const std::string label = short_line(scheme.classes[best], label_width);
  fmt::print("{}{}  {:.4f}{}  {}\n", label, std::string(label_width - display_width(label), ' '), probability, heads,
             short_line(fmt::format("{}", fmt::join(texts, " | ")), 80));
}

/// The next texts, at most `rows`.
std::vector<Texts> read_texts(const NextText& next, size_t rows) {
  std::vector<Texts> texts;
  while (texts.size() < rows) {
    auto text = next();
    if (!text) break;
    texts.push_back(std::move(*text));
  }
  return texts;
}

void check_finite(const Classified& classified) {
  if (!at::isfinite(classified.log_probability_BC).all().item<bool>())
    throw FailedError("classify",
                      "expected finite probabilities; found NaN or infinity; name an earlier checkpoint of the model.");
}

/// The width of the column of labels.
size_t label_width_of(const LabelScheme& scheme) {
  constexpr size_t kMost = 24;
  size_t width = 0;
  for (const auto& name : scheme.classes) width = std::max(width, display_width(name));
  return std::min(width, kMost);
}

/// Returns true if the texts come from a pipe or a terminal, which may keep the next one waiting.
bool waits_for_input(const ClassifyWords& words) {
  struct stat status = {};
  return words.file == "-" && (::fstat(STDIN_FILENO, &status) != 0 || !S_ISREG(status.st_mode));
}

struct Counts {
  int64_t texts = 0, cut = 0;
};

/// Classifies and prints the texts batch by batch, until they end or a stop signal arrives.
Counts print_all(const ClassifyWords& words, const ClassifierFolder& model, const NextText& next) {
  const size_t label_width = label_width_of(model.scheme);
  constexpr int64_t kFileBatch = 32;
  const size_t rows = static_cast<size_t>(words.batch > 0 ? words.batch : waits_for_input(words) ? 1 : kFileBatch);
  Counts counts;
  while (stop_signal() == 0) {
    const auto texts = read_texts(next, rows);
    if (texts.empty()) break;
    std::vector<std::vector<int32_t>> tokens;
    for (const auto& text : texts) tokens.push_back(encode_texts(text, *model.tokenizer));
    auto batch = pad_texts({tokens.begin(), tokens.end()}, model.classifier->config().context);
    const auto classified = classify(model.classifier, ExampleTensors(batch), {.first_row = counts.texts});
    check_finite(classified);
    for (size_t b = 0; b < texts.size(); ++b) {
      const auto row = static_cast<int64_t>(b);
      const bool is_cut = static_cast<int64_t>(tokens[b].size()) > batch.lengths[b];
      counts.cut += static_cast<int64_t>(is_cut);
      if (words.json)
        print_json(model.scheme, classified, row, batch.lengths[b], is_cut);
      else
        print_line(model.scheme, classified, row, texts[b], label_width);
    }
    flush_output();
    counts.texts += batch.rows;
  }
  return counts;
}

}  // namespace

int run_classify(const Arguments& arguments) {
  CLI::App app(std::string("Label texts with a classifier.\n") + kClassifyExamples, "prism classify");
  ClassifyWords words;
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  PRISM_CHECK(!words.file.empty() || !words.texts.empty(), "classify",
              "expected texts to classify; found neither FILE nor --text; give one, or - for standard input.");
  start_compute(words.compute.threads, words.compute.device);
  const ClassifierFolder model = load_classifier(words.model, words.compute);
  check_has_tokenizer(model, "classify");
  catch_stop_signals();
  const auto counts = print_all(words, model, texts_of(words, model.scheme));
  tell_cut(counts.cut, counts.texts, model);
  if (stop_signal() != 0)
    throw FailedError(
        "classify",
        fmt::format("expected to label all texts; stopped by a signal after {}; run it again.", counts.texts));
  PRISM_CHECK(counts.texts > 0, "classify", "expected at least one text; found none in {}; name another.",
              plain_line(words.file));
  return 0;
}

}  // namespace prism
