// prism analyse maps: pictures of which words each word of a text attends to.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "prism/analysis/attention_rows.h"
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

/// Keeps the weights of the chosen heads of a single sequence.
class MapProbe : public Probe {
 public:
  MapProbe(std::vector<int64_t> layers, std::optional<std::string> heads)
      : layers_(std::move(layers)), heads_(std::move(heads)) {}

  void observe_attention(size_t layer, const AttentionInput& input) override {
    const auto number = static_cast<int64_t>(layer);
    if (std::find(layers_.begin(), layers_.end(), number) == layers_.end()) return;
    const int64_t heads = input.q_BTHD.size(2), keys = input.kv.k_BGSD.size(2);
    const auto weights_HTS = torch::zeros({heads, keys, keys}, torch::kDouble);
    for (const auto& span : query_spans(input, QueryRange::all, "maps"))
      stream_attention(input, span, [&](const AttentionRows& rows) {
        const auto& found = rows.weights_RTS;
        weights_HTS.narrow(0, rows.first_head, found.size(0))
            .narrow(1, rows.first_position, found.size(1))
            .narrow(2, 0, found.size(2))
            .copy_(found);
      });
    for (const int64_t head : parse_numbers(heads_, heads, fmt::format("--heads of layer {}", layer)))
      maps.push_back({number, head, weights_HTS[head].contiguous()});
  }

  struct Map {
    int64_t layer, head;
    torch::Tensor weights_TS;
  };
  std::vector<Map> maps;

 private:
  std::vector<int64_t> layers_;
  std::optional<std::string> heads_;
};

/// The weights of the keys that each query sees: rows of growing length.
Json rows_of(const torch::Tensor& weights_TS) {
  Json rows = Json::array();
  const auto* weights = weights_TS.const_data_ptr<double>();
  const int64_t count = weights_TS.size(0);
  for (int64_t t = 0; t < count; ++t)
    rows.push_back(std::vector<double>(weights + t * count, weights + t * count + t + 1));
  return rows;
}

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
  Reading reading(words);
  const auto count = static_cast<int64_t>(reading.config().layers.size());
  MapProbe probe(parse_numbers(layers, count, "--layers"), heads);
  std::vector<std::string> tokens;
  reading.show([&](BatchTensors& batch) {
    const int64_t length = batch.tokens_BT.size(1);
    PRISM_CHECK(length <= kMostTokens, "analyse",
                "--tokens: expected at most {}, so that they can be read beside a picture; found {}; choose fewer.",
                kMostTokens, grouped(length));
    for (int64_t t = 0; t < length; ++t) {
      const auto id = static_cast<int32_t>(batch.tokens_BT[0][t].item<int64_t>());
      tokens.push_back(reading.tokenizer().decode({&id, 1}));
    }
    batch.context.probe = &probe;
    reading.model()(batch.tokens_BT, batch.context);
  });
  AnalysisLines lines({{"analysis", "maps"}, {"model", words.model}, {"reading", reading.description()}});
  for (const auto& map : probe.maps)
    lines.add({{"layer", map.layer}, {"head", map.head}, {"tokens", tokens}, {"weights", rows_of(map.weights_TS)}});
  lines.print(output);
  return 0;
}

}  // namespace prism
