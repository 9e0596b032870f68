// prism analyse norms: how large the residual stream is in front of each layer, and which units are dead.
#include "prism/analysis/activations.h"
#include "prism/cli/analyse.h"
#include "prism/cli/analysis_output.h"

namespace prism {
namespace {

constexpr const char* kHelp = R"(
The residual stream is what layers read and add to. Its root mean square over tokens and features should grow slowly
from layer to layer; one that grows by large factors announces a training that diverges. A unit of a feed-forward part
is dead if it was 0 for every token: it has no gradient and does not come back.

  prism analyse norms runs/prism --data data/novels
  prism analyse norms runs/prism book.txt --json
)";

}  // namespace

int run_analyse_norms(const Arguments& arguments) {
  CLI::App app(
      std::string("how large the residual stream is in front of each layer, and which units are dead\n") + kHelp,
      "prism analyse norms");
  ReadingWords words;
  OutputWords output;
  add_reading_options(app, words);
  add_output_options(app, output, /*with_figures=*/false);
  if (!parse(app, arguments)) return 0;
  const torch::NoGradGuard no_gradients;
  Reading reading(words, "analyse");
  ActivationProbe probe;
  reading.show([&](BatchTensors& batch) {
    batch.context.probe = &probe;
    reading.model()(batch.tokens_BT, batch.context);
  });
  AnalysisLines lines("norms", words.model, reading);
  for (const auto& layer : probe.result()) lines.add(fields_to_json(layer));
  lines.print(output);
  return 0;
}

}  // namespace prism
