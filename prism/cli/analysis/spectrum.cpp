// prism analyse spectrum: how much of each head's queries and keys remains after averaging over blocks.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "prism/analysis/spectrum_probe.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"
#include "prism/cli/analysis/reading.h"
#include "prism/cli/options/attention_tensors.h"
#include "prism/cli/options/compute_options.h"
#include "prism/core/error.h"
#include "prism/kernels/to_vector.h"
#include "prism/report/analysis/spectrum.h"
#include "prism/report/draw/gnuplot.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// The largest number of cells per side of an attention map.
constexpr int64_t kCells = 64;

constexpr const char* kSpectrumHelp =
    R"(Measure how much of the magnitude of each head's queries and keys remains after averaging over blocks.

Selectors of key blocks (see prism attend --help) that compare averages of blocks, such as spectral and mean_pooling,
cannot see what averaging removes.

The rotary encoding turns each pair of features by its own angle per token. Averaging over a block therefore shrinks
pair j by a factor lambda_j. Pairs form three zones: dead (a full turn or more per block, lambda near 0), transition,
and semantic (lambda of at least 0.999). For each zone the table shows the root mean square of the queries and of the
keys as "a → b": a over single tokens, b over means of blocks.

SOURCE is a model, which reads the beginning of FILE, or a safetensors file with q [B, H, T, D] and k [B, G, S, D].
--figures draws three pictures of one head: lambda_j; the energy of each pair; and the attention computed from its slow
pairs, from its fast pairs and from all features (arXiv 2602.08426, figures 1 to 3).

  prism analyse spectrum runs/long book.txt --tokens 4096 --layer 3 --head 1 --figures spectrum
  prism analyse spectrum layer12.safetensors --rotary-base 1000000 --json
)";

struct SpectrumWords {
  std::string source, text, figures, invalid_utf8 = "error";
  int64_t tokens = 0, block_size = 128, layer = 0, head = 0;
  RotaryWords rotary;
  ComputeOptions compute;
  bool json = false;
};

SpectrumOptions options_of(const SpectrumWords& words) {
  return {.block = words.block_size, .kept_layer = words.figures.empty() ? std::nullopt : std::optional(words.layer)};
}

/// The spectra of a source, and a description of what was read.
struct ReadSpectra {
  SpectrumProbe probe;
  std::string reading;
};

/// Checks --layer and --head. @param heads  number of heads in each layer.
void check_head(const SpectrumWords& words, const std::vector<int64_t>& heads) {
  const auto layers = static_cast<int64_t>(heads.size());
  PRISM_CHECK(words.layer >= 0 && words.layer < layers, "analyse",
              "--layer: expected a layer from 0 to {}; found {}; change it.", layers - 1, words.layer);
  const int64_t count = heads[static_cast<size_t>(words.layer)];
  PRISM_CHECK(words.head >= 0 && words.head < count, "analyse",
              "--head: expected a head of layer {} from 0 to {}; found {}; change it.", words.layer, count - 1,
              words.head);
}

ReadSpectra read_model(const SpectrumWords& words) {
  PRISM_CHECK(fs::exists(words.source), "analyse",
              "expected a model folder, a run or a safetensors file; found nothing at {}; name another.", words.source);
  PRISM_CHECK(!words.text.empty(), "analyse", "expected FILE, a text for the model to read; found none; name one.");
  PRISM_CHECK(words.rotary == RotaryWords{}, "analyse",
              "expected no --rotary or --mrope option with a model, which defines its own rotary encoding; found one; "
              "leave it out.");
  PRISM_CHECK(
      load_config(words.source).classes == 0, "analyse",
      "expected a language model or a safetensors file; found a classifier in {}; save its queries and keys with "
      "prism analyse capture, and name that file.",
      words.source);
  ReadingWords reading_words;
  reading_words.model = words.source;
  reading_words.file = words.text;
  reading_words.tokens = words.tokens;
  reading_words.invalid_utf8 = words.invalid_utf8;
  reading_words.compute = words.compute;
  Reading reading(reading_words);
  std::vector<int64_t> heads;
  for (const auto& layer : reading.config().layers) heads.push_back(layer.heads);
  check_head(words, heads);
  SpectrumProbe probe(reading.config().layers, options_of(words));
  reading.show_to(probe);
  return {std::move(probe), reading.description()};
}

ReadSpectra read_source(const SpectrumWords& words) {
  if (!fs::is_regular_file(words.source) || is_model_file(words.source)) return read_model(words);
  PRISM_CHECK(words.text.empty() && words.tokens == 0, "analyse",
              "expected {} only with a model; found it with the file {}; leave it out.",
              words.text.empty() ? "--tokens" : "a text file", words.source);
  start_compute(words.compute.threads, words.compute.device);
  const auto tensors = read_attention_tensors(words.source, words.rotary, "analyse");
  check_head(words, {tensors.q_BTHD.size(2)});
  SpectrumProbe probe({}, options_of(words));
  probe.add({tensors.q_BTHD[0], tensors.k_BGSD[0], tensors.pairs});
  return {std::move(probe), describe_reading("queries and keys", 1, tensors.k_BGSD.size(2))};
}

Json spectrum_line(const SpectrumWords& words, size_t layer, size_t head, const HeadSpectrum& spectrum) {
  Json line = {{"layer", layer}, {"head", head}, {"block_size", words.block_size}};
  for (const char* list : {"zones", "pairs"}) line[list] = Json::array();
  for (const auto& zone : spectrum.zones) line["zones"].push_back(fields_to_json(zone));
  for (const auto& pair : spectrum.pairs) line["pairs"].push_back(fields_to_json(pair));
  return line;
}

void write_head(const SpectrumWords& words, const LayerTensors& layer, const Json& line) {
  std::vector<BandGrid> grids;
  for (const auto& map : band_maps(layer, words.head, kCells))
    grids.push_back({map.name, attention_grid(map.shares_MN.size(0), map.shares_MN.size(1), to_doubles(map.shares_MN),
                                              map.cell_tokens)});
  write_figures(head_figures(line, grids, "gnuplot"), words.figures);
}

void add_options(CLI::App& app, SpectrumWords& words) {
  app.add_option("SOURCE", words.source, std::string(kModelHelp) + ", or a safetensors file with q and k")->required();
  app.add_option(
      "FILE", words.text,
      "text file whose beginning the model reads; not for a safetensors file (.jsonl: the field named text in each "
      "row; any other ending: plain text)");
  app.add_option("--tokens", words.tokens, "tokens of FILE to read; 0: the model's context")->capture_default_str();
  add_invalid_utf8_option(app, words.invalid_utf8);
  app.add_option("--block-size", words.block_size, "tokens per block, over which means are taken")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  auto* figures =
      app.add_option("--figures", words.figures, "also write figures of one head, as SVG files, into this folder");
  figures->type_name("FOLDER");
  app.add_option("--layer", words.layer, "layer of that head, counted from 0")->needs(figures)->capture_default_str();
  app.add_option("--head", words.head, "which head to draw, counted from 0")->needs(figures)->capture_default_str();
  add_rotary_options(app, words.rotary);
  app.add_flag(
      "--json", words.json,
      "print one JSON object per head, with every pair, instead of the table; prism report --analysis shows them");
  add_weights_option(app, words.compute);
  add_compute_options(app, words.compute);
}

}  // namespace

int run_analyse_spectrum(const Arguments& arguments) {
  SpectrumWords words;
  CLI::App app(kSpectrumHelp, "prism analyse spectrum");
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  const torch::NoGradGuard no_gradients;
  const auto folder = make_figures_folder(words.figures);
  if (!words.figures.empty()) check_gnuplot("gnuplot");
  const auto [probe, reading] = read_source(words);
  const auto& spectra = probe.spectra();
  if (!words.figures.empty()) {
    const auto layer = static_cast<size_t>(words.layer), head = static_cast<size_t>(words.head);
    write_head(words, probe.kept(), spectrum_line(words, layer, head, spectra[layer][head]));
  }
  AnalysisLines lines({{"analysis", "spectrum"}, {"model", words.source}, {"reading", reading}});
  for (size_t l = 0; l < spectra.size(); ++l)
    for (size_t h = 0; h < spectra[l].size(); ++h) lines.add(spectrum_line(words, l, h, spectra[l][h]));
  lines.print({.figures = "", .json = words.json});
  return 0;
}

}  // namespace prism
