// prism analyse entropy: how evenly each head spreads its attention.
#include "prism/analysis/attention_entropy.h"
#include "prism/cli/analyse.h"
#include "prism/cli/analysis_output.h"

namespace prism {
namespace {

constexpr const char* kHelp = R"(
Each head gives a token weights, adding up to 1, for itself and the tokens before it. Their entropy, - sum w ln w, is 0
nats where all of it goes to one token and ln n where it is spread evenly over n. The table shows each head's mean over
all tokens. Heads near 0 look things up; heads near the mean of ln n have not learned where to look, or gather.

  prism analyse entropy runs/prism --data data/novels --sequences 64
  prism analyse entropy runs/prism book.txt --tokens 256 --figures entropy
  prism analyse entropy runs/prism --data data/novels --json > entropy.jsonl; prism report runs/prism --analysis entropy.jsonl
)";

}  // namespace

int run_analyse_entropy(const Arguments& arguments) {
  CLI::App app(std::string("how evenly each head spreads its attention\n") + kHelp, "prism analyse entropy");
  ReadingWords words;
  OutputWords output;
  add_reading_options(app, words);
  add_output_options(app, output, /*with_figures=*/true);
  if (!parse(app, arguments)) return 0;
  const torch::NoGradGuard no_gradients;
  Reading reading(words, "analyse");
  AttentionEntropyProbe probe(reading.config().layers);
  reading.show([&](BatchTensors& batch) {
    batch.context.probe = &probe;
    reading.model()(batch.tokens_BT, batch.context);
  });
  AnalysisLines lines("entropy", words.model, reading);
  for (const auto& layer : probe.result()) lines.add(fields_to_json(layer));
  lines.print(output);
  return 0;
}

}  // namespace prism
