// prism analyse spectrum: the energy in the fast and slow rotary pairs of heads, before and after pooling.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "prism/analysis/spectrum_probe.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/options/attention_tensors.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/field_options.h"
#include "prism/cli/reading.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/kernels/rotary_pairs.h"
#include "prism/report/analysis/spectrum.h"
#include "prism/report/draw/gnuplot.h"
#include "prism/report/draw/grid_plot.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/tables/table.h"
#include "prism/sparse/methods/spectral/bands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "spectrum";
/// The largest number of cells per side of an attention map.
constexpr int64_t kCells = 64;

constexpr const char* kSpectrumHelp = R"(
The rotary encoding turns each pair of features by its own angle per token. Selectors of key blocks look at the mean
over a block of tokens. In that mean, pair j keeps the share lambda_j of its length: little for fast pairs (dead zone:
at least a whole turn per block), part for the next (transition), all for slow pairs (semantic: lambda of at least
0.999). The table shows the root mean square of queries and keys in each zone: of tokens -> of means over blocks.

SOURCE is a model, which reads the beginning of TEXT, or a safetensors file with q [B, H, T, D] and k [B, G, S, D].
--figures draws lambda_j, the energy of each pair of one head, and what its slow band, its fast band and all of its
features attend to (arXiv 2602.08426, figures 1 to 3).

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

/// Checks --layer and --head. @param heads  number of heads in each layer.
void check_head(const SpectrumWords& words, const std::vector<int64_t>& heads) {
  const auto layers = static_cast<int64_t>(heads.size());
  PRISM_CHECK(words.layer >= 0 && words.layer < layers, "analyse",
              "--layer: expected a layer within 0-{}; found {}; change it.", layers - 1, words.layer);
  const int64_t count = heads[static_cast<size_t>(words.layer)];
  PRISM_CHECK(words.head >= 0 && words.head < count, "analyse",
              "--head: expected a head of layer {} within 0-{}; found {}; change it.", words.layer, count - 1,
              words.head);
}

SpectrumProbe read_model(const SpectrumWords& words) {
  PRISM_CHECK(fs::exists(words.source), "analyse",
              "expected a model folder, a run or a safetensors file; found nothing at {}; name another.", words.source);
  PRISM_CHECK(!words.text.empty(), "analyse", "expected TEXT for the model to read; found none; name a file.");
  PRISM_CHECK(words.rotary == RotaryWords{}, "analyse",
              "expected no --rotary or --mrope option with a model, which defines its own rotary encoding; found one; "
              "leave it out.");
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
  return probe;
}

SpectrumProbe read_source(const SpectrumWords& words) {
  if (!fs::is_regular_file(words.source)) return read_model(words);
  PRISM_CHECK(words.text.empty() && words.tokens == 0, "analyse",
              "expected neither TEXT nor --tokens with queries and keys from a file; found one; leave it out.");
  start_compute(words.compute.threads, words.compute.device);
  const auto tensors = read_attention_tensors(words.source, words.rotary, "analyse");
  check_head(words, {tensors.q_BTHD.size(2)});
  SpectrumProbe probe({}, options_of(words));
  probe.add({tensors.q_BTHD[0], tensors.k_BGSD[0], tensors.pairs});
  return probe;
}

std::string before_and_after(double tokens, double pooled) {
  return fmt::format("{:.3f} -> {:.3f}", tokens, pooled);
}

Table spectrum_table(const std::vector<std::vector<HeadSpectrum>>& layers, int64_t block) {
  Table table{"Spectrum", {{"layer"}, {"head"}, {"pairs", true}}, {}, {}};
  for (const std::string zone : kZones)
    for (const char* side : {" q", " k"}) table.columns.push_back({zone + side, true});
  for (size_t l = 0; l < layers.size(); ++l)
    for (size_t h = 0; h < layers[l].size(); ++h) {
      auto& row = table.rows.emplace_back();
      row.push_back({std::to_string(l)});
      row.push_back({std::to_string(h)});
      // Zones differ between layers of different head widths.
      const auto& head = layers[l][h];
      row.push_back({fmt::format("{} + {} + {}", head.zone("dead").pairs, head.zone("transition").pairs,
                                 head.zone("semantic").pairs)});
      for (const auto& zone : head.zones) {
        row.push_back({before_and_after(zone.energy.q, zone.energy.q_pooled)});
        row.push_back({before_and_after(zone.energy.k, zone.energy.k_pooled)});
      }
    }
  table.notes.push_back(fmt::format(
      "Pairs: dead + transition + semantic. Root mean squares: of tokens -> of means over {} tokens.", block));
  return table;
}

Json spectrum_line(const SpectrumWords& words, size_t layer, size_t head, const HeadSpectrum& spectrum) {
  Json line = {{"analysis", kName}, {"layer", layer}, {"head", head}, {"block_size", words.block_size}};
  for (const char* list : {"zones", "pairs"}) line[list] = Json::array();
  for (const auto& zone : spectrum.zones) line["zones"].push_back(fields_to_json(zone));
  for (const auto& pair : spectrum.pairs) line["pairs"].push_back(fields_to_json(pair));
  return line;
}

/// What some features of a head attend to.
std::string map_figure(const LayerTensors& layer, int64_t head, const std::vector<int64_t>& features,
                       const std::string& what) {
  const double scale = 1 / std::sqrt(static_cast<double>(layer.pairs.head_dim));
  const auto k_SD = layer.k(head);
  const auto shares_MN = band_attention(layer.q(head), k_SD, features, scale, kCells).contiguous();
  const double* first = shares_MN.const_data_ptr<double>();
  const auto grid = attention_grid(shares_MN.size(0), shares_MN.size(1), {first, first + shares_MN.numel()},
                                   tokens_of_cell(k_SD.size(0), kCells));
  return plot_file(grid_plot("map", what, grid), {}, "gnuplot");
}

/// Draws all figures before writing the first. @param line  of the head to draw.
void draw_figures(const SpectrumWords& words, const LayerTensors& layer, const Json& line) {
  PRISM_CHECK(!line.at("pairs").empty(), "analyse",
              "--figures: expected rotary pairs; found none; leave the figures out.");
  const std::string what = fmt::format("layer {}, head {}", words.layer, words.head);
  std::vector<std::pair<std::string, std::string>> files = {
      {"gain.svg", plot_file(gain_plot(line), {}, "gnuplot")},
      {"energy.svg", plot_file(energy_plot({line}, what), kEnergyNames, "gnuplot")}};
  const auto draw_map = [&](const std::string& name, const std::vector<int64_t>& features) {
    files.emplace_back(name + ".svg",
                       map_figure(layer, words.head, features, name + ": where attention goes, " + what));
  };
  for (const auto& band : paper_bands(layer.pairs)) draw_map(band.name, band.features);
  draw_map("full", all_features(layer.pairs.head_dim));
  const fs::path folder = words.figures;
  make_folder(folder);
  for (const auto& [name, svg] : files) write_file(folder / name, svg);
}

void add_options(CLI::App& app, SpectrumWords& words) {
  app.add_option("SOURCE", words.source,
                 "a model folder, a run folder (its last checkpoint), or a safetensors file with q and k")
      ->required();
  app.add_option("TEXT", words.text, "text file that the model reads; not for a safetensors file");
  app.add_option("--tokens", words.tokens, "tokens of TEXT to read; 0: the model's context")->capture_default_str();
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
  app.add_flag("--json", words.json, "print one JSON object per head, with every pair, instead of the table");
  add_compute_options(app, words.compute);
}

}  // namespace

int run_analyse_spectrum(const Arguments& arguments) {
  SpectrumWords words;
  CLI::App app(
      std::string("Measure the energy in the fast and slow rotary pairs of heads, before and after pooling.\n") +
          kSpectrumHelp,
      "prism analyse spectrum");
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  const torch::NoGradGuard no_gradients;
  if (!words.figures.empty()) check_gnuplot("gnuplot");
  const auto measured = read_source(words);
  const auto& spectra = measured.spectra();
  if (!words.figures.empty()) {
    const auto layer = static_cast<size_t>(words.layer), head = static_cast<size_t>(words.head);
    draw_figures(words, measured.kept(), spectrum_line(words, layer, head, spectra[layer][head]));
  }
  if (!words.json) {
    fmt::print("{}", table_text(spectrum_table(spectra, words.block_size)));
    return 0;
  }
  for (size_t l = 0; l < spectra.size(); ++l)
    for (size_t h = 0; h < spectra[l].size(); ++h)
      fmt::print("{}\n", to_text(spectrum_line(words, l, h, spectra[l][h])));
  return 0;
}

}  // namespace prism
