// prism analyse maps: pictures of which words each word of a text attends to.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "prism/analysis/attention/attention_maps.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"
#include "prism/report/draw/number_text.h"

namespace prism {
namespace {

/// The largest number of tokens that can be read beside a picture.
constexpr int64_t kMostTokens = 128;

constexpr const char* kMapsHelp = R"(
Draws a map of each chosen head, with one row and one column per token of a text. The darker a cell, the more the row's
token attends to the column's. Give --figures for pictures, --json for the weights themselves, or both.

  prism analyse maps runs/prism --text "The cat sat on the mat." --figures maps
  prism analyse maps runs/prism book.txt --tokens 48 --layers 0,3-5 --heads 0 --figures maps
)";

}  // namespace

int run_analyse_maps(const Arguments& arguments) {
  CLI::App app(std::string("Draw which words each word of a text attends to.\n") + kMapsHelp, "prism analyse maps");
  ReadingWords words;
  OutputWords output;
  std::optional<std::string> layers, heads;
  add_reading_options(app, words, /*with_data=*/false);
  app.add_option("--layers", layers, "layers, counted from 0, e.g. 0,3-5; default: all")->type_name("LIST");
  app.add_option("--heads", heads, "heads of each of these layers, counted from 0; default: all")->type_name("LIST");
  add_output_options(app, output);
  if (!parse(app, arguments)) return 0;
  PRISM_CHECK(!output.figures.empty() || output.json, "analyse",
              "expected --figures, a folder for pictures, or --json; found neither; add one.");
  const torch::NoGradGuard no_gradients;
  const auto folder = make_figures_folder(output.figures);
  Reading reading(words);
  const auto count = static_cast<int64_t>(reading.config().layers.size());
  const auto chosen = parse_numbers(layers, count, "--layers");
  AttentionMapProbe probe([&](size_t layer, int64_t of_layer) {
    if (std::find(chosen.begin(), chosen.end(), static_cast<int64_t>(layer)) == chosen.end())
      return std::vector<int64_t>();
    return parse_numbers(heads, of_layer, fmt::format("--heads of layer {}", layer));
  });
  std::vector<std::string> tokens;
  reading.show([&](Pass& pass) {
    const int64_t length = pass.tokens_BT.size(1);
    PRISM_CHECK(length <= kMostTokens, "analyse",
                "--tokens: expected at most {}, so that they can be read beside a picture; found {}; choose fewer.",
                kMostTokens, grouped(length));
    for (int64_t t = 0; t < length; ++t)
      tokens.emplace_back(reading.tokenizer().bytes(static_cast<int32_t>(pass.tokens_BT[0][t].item<int64_t>())));
    pass.context.probe = &probe;
    reading.model().forward(pass.tokens_BT, pass.context);
  });
  AnalysisLines lines({{"analysis", "maps"}, {"model", words.model}, {"reading", reading.description()}});
  for (const auto& map : probe.maps())
    lines.add({{"layer", map.layer}, {"head", map.head}, {"tokens", tokens}, {"weights", rows_of(map)}});
  lines.print(output);
  return 0;
}

}  // namespace prism
