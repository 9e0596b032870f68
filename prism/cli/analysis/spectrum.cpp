// prism analyse spectrum: the energy in the fast and slow rotary pairs of heads, before and after pooling.
#include <ATen/Functions.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "prism/analysis/spectrum.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/options/attention_tensors.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/field_options.h"
#include "prism/cli/reading.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/kernels/rotary_pairs.h"
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

/// Queries and keys of one layer, for the first sequence.
struct LayerTensors {
  torch::Tensor q_THD, k_GSD;
  RotaryPairs pairs;

  int64_t heads() const { return q_THD.size(1); }
  torch::Tensor q(int64_t head) const { return q_THD.select(1, head); }
  torch::Tensor k(int64_t head) const { return k_GSD[head * k_GSD.size(0) / heads()]; }
};

/// Measures each layer when it is observed, and keeps the tensors of the layer to draw.
class Spectra : public Probe {
 public:
  /// @param layers  of the model; empty for tensors from a file.
  explicit Spectra(const SpectrumWords& words, const std::vector<LayerConfig>& layers = {})
      : words_(words), layers_(layers) {}

  void observe_attention(size_t layer, const AttentionInput& input) override {
    const auto& config = layers_.at(layer);
    add({input.q_BTHD[0].cpu(), input.kv.k_BGSD[0].cpu(),
         config.rotary.turns() ? rotary_pairs(config.rotary, config.head_dim) : RotaryPairs{}});
  }
  void add(const LayerTensors& layer) {
    PRISM_CHECK(!layer.pairs.angles.empty(), "analyse",
                "expected layers with a rotary encoding; found layer {} without one; name another model or file.",
                spectra_.size());
    if (static_cast<int64_t>(spectra_.size()) == words_.layer && !words_.figures.empty())
      shown_ = {layer.q_THD.clone(), layer.k_GSD.clone(), layer.pairs};
    auto& heads = spectra_.emplace_back();
    for (int64_t h = 0; h < layer.heads(); ++h)
      heads.push_back(measure_spectrum(layer.q(h), layer.k(h), layer.pairs, words_.block_size));
  }
  /// The spectrum of every layer and head.
  const std::vector<std::vector<HeadSpectrum>>& spectra() const { return spectra_; }
  const LayerTensors& shown() const { return shown_; }

 private:
  const SpectrumWords& words_;
  std::vector<LayerConfig> layers_;
  std::vector<std::vector<HeadSpectrum>> spectra_;
  LayerTensors shown_;
};

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

Spectra read_model(const SpectrumWords& words) {
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
  Spectra spectra(words, reading.config().layers);
  reading.show_to(spectra);
  return spectra;
}

Spectra read_source(const SpectrumWords& words) {
  if (!fs::is_regular_file(words.source)) return read_model(words);
  PRISM_CHECK(words.text.empty() && words.tokens == 0, "analyse",
              "expected neither TEXT nor --tokens with queries and keys from a file; found one; leave it out.");
  start_compute(words.compute.threads, words.compute.device);
  const auto tensors = read_attention_tensors(words.source, words.rotary, "analyse");
  check_head(words, {tensors.q_BTHD.size(2)});
  Spectra spectra(words);
  spectra.add({tensors.q_BTHD[0], tensors.k_BGSD[0], tensors.pairs});
  return spectra;
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

/// One line over the pairs.
PlotSeries line_over_pairs(const std::vector<PairEnergy>& pairs, int series, double (*value)(const PairEnergy&)) {
  PlotSeries line{.style = PlotStyle::kPoints, .series = series, .points = {}};
  for (const auto& pair : pairs) line.points.push_back({.x = static_cast<double>(2 * pair.pair), .y = value(pair)});
  return line;
}

std::string gain_figure(const HeadSpectrum& spectrum, int64_t block) {
  Plot plot{.id = "gain",
            .description = fmt::format("Share of each pair's length that the mean over {} tokens keeps", block),
            .x = {.label = "2 j", .low = 0, .high = 2.0 * static_cast<double>(spectrum.pairs.size())},
            .y = {.label = "lambda", .low = 0, .high = 1.05}};
  plot.series.push_back(line_over_pairs(spectrum.pairs, 0, [](const PairEnergy& pair) { return pair.gain; }));
  return plot_file(plot, {}, "gnuplot");
}

std::string energy_figure(const HeadSpectrum& spectrum, const std::string& what) {
  Plot plot{.id = "energy",
            .description = "Root mean square of each pair, for tokens and for means over blocks, " + what,
            .x = {.label = "2 j", .low = 0, .high = 2.0 * static_cast<double>(spectrum.pairs.size())},
            .y = {.label = "root mean square", .low = 0, .high = 0}};
  using Value = double (*)(const PairEnergy&);
  int series = 0;
  for (const Value value : {Value{[](const PairEnergy& p) { return p.energy.q; }},
                            Value{[](const PairEnergy& p) { return p.energy.q_pooled; }},
                            Value{[](const PairEnergy& p) { return p.energy.k; }},
                            Value{[](const PairEnergy& p) { return p.energy.k_pooled; }}}) {
    plot.series.push_back(line_over_pairs(spectrum.pairs, series++, value));
    for (const auto& point : plot.series.back().points) plot.y.high = std::max(plot.y.high, 1.05 * point.y);
  }
  if (plot.y.high == 0) plot.y.high = 1;  // a head without any energy
  return plot_file(plot, {"queries", "queries, pooled", "keys", "keys, pooled"}, "gnuplot");
}

/// Draws the shares of each row relative to its largest, so that rows with a long past are visible too.
/// @param tokens  tokens per cell.
std::string map_figure(const torch::Tensor& shares_MN, int64_t tokens, const std::string& what) {
  const int64_t rows = shares_MN.size(0), columns = shares_MN.size(1);
  const auto relative = shares_MN / shares_MN.amax(1, /*keepdim=*/true);
  const auto seen = torch::ones_like(relative, torch::kBool).tril(columns - rows);
  const auto shown = torch::where(seen, relative, kNoShare).contiguous();
  const double *first = shown.const_data_ptr<double>(), size = static_cast<double>(tokens);
  const ShadeGrid grid{.rows = rows,
                       .columns = columns,
                       .shares = {first, first + shown.numel()},
                       .first_row = static_cast<double>(columns - rows) * size,
                       .row_step = size,
                       .column_step = size,
                       .row_label = "query, tokens",
                       .column_label = "key, tokens"};
  return plot_file(grid_plot("map", what, grid), {}, "gnuplot");
}

/// Draws all figures before writing the first.
void draw_figures(const SpectrumWords& words, const LayerTensors& layer, const HeadSpectrum& spectrum) {
  PRISM_CHECK(!spectrum.pairs.empty(), "analyse",
              "--figures: expected rotary pairs; found none; leave the figures out.");
  const std::string what = fmt::format("layer {}, head {}", words.layer, words.head);
  std::vector<std::pair<std::string, std::string>> files = {{"gain.svg", gain_figure(spectrum, words.block_size)},
                                                            {"energy.svg", energy_figure(spectrum, what)}};
  const auto q = layer.q(words.head), k = layer.k(words.head);
  const auto map = [&](const std::string& name, const std::vector<int64_t>& features) {
    const double scale = 1 / std::sqrt(static_cast<double>(layer.pairs.head_dim));
    const auto shares = band_attention(q, k, features, scale, kCells);
    files.emplace_back(name + ".svg",
                       map_figure(shares, tokens_of_cell(k.size(0), kCells), name + ": where attention goes, " + what));
  };
  for (const auto& band : paper_bands(layer.pairs)) map(band.name, band.features);
  map("full", all_features(layer.pairs.head_dim));
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
  app.add_option("--figures", words.figures, "also write figures of one head, as SVG files, into this folder")
      ->type_name("FOLDER");
  app.add_option("--layer", words.layer, "layer of that head, counted from 0")->capture_default_str();
  app.add_option("--head", words.head, "which head to draw, counted from 0")->capture_default_str();
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
  if (!words.figures.empty())
    draw_figures(words, measured.shown(), spectra[static_cast<size_t>(words.layer)][static_cast<size_t>(words.head)]);
  if (!words.json) {
    fmt::print("{}", table_text(spectrum_table(spectra, words.block_size)));
    return 0;
  }
  for (size_t l = 0; l < spectra.size(); ++l)
    for (size_t h = 0; h < spectra[l].size(); ++h) {
      Json row = {{"analysis", kName}, {"layer", l}, {"head", h}, {"block_size", words.block_size}};
      for (const auto& zone : spectra[l][h].zones) row["zones"].push_back(fields_to_json(zone));
      for (const auto& pair : spectra[l][h].pairs) row["pairs"].push_back(fields_to_json(pair));
      fmt::print("{}\n", to_text(row));
    }
  return 0;
}

}  // namespace prism
