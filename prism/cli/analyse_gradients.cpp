// prism analyse gradients: how large the gradient of each parameter is beside its values.
#include "prism/cli/analyse.h"
#include "prism/cli/analysis_output.h"
#include "prism/training/diagnostics.h"

namespace prism {
namespace {

constexpr const char* kHelp = R"(
The gradient of the mean loss of what is read, parameter by parameter: its Euclidean norm, that of the values, and one
over the other. Plain gradient descent changes a parameter by that share times the learning rate; parameters whose
share is a hundredth of their neighbours' hardly learn. What an optimizer really did is recorded while a run trains
(train.diagnose_steps) and shown by its report.

  prism analyse gradients runs/prism --data data/novels --split train --sequences 32
)";

}  // namespace

int run_analyse_gradients(const Arguments& arguments) {
  CLI::App app(std::string("how large the gradient of each parameter is beside its values\n") + kHelp,
               "prism analyse gradients");
  ReadingWords words;
  OutputWords output;
  add_reading_options(app, words);
  add_output_options(app, output, /*with_figures=*/false);
  if (!parse(app, arguments)) return 0;
  Reading reading(words, "analyse");
  auto decoder = reading.model();
  int64_t tokens = 0;
  reading.show(
      [&](BatchTensors& batch) {
        // Of the sum over tokens, so that batches of fewer rows count as what they are.
        const auto loss = decoder->loss(decoder(batch.tokens_BT, batch.context), batch.labels_BT);
        (loss * static_cast<double>(batch.labels_BT.numel())).backward();
        tokens += batch.labels_BT.numel();
      },
      /*labelled=*/true);
  AnalysisLines lines("gradients", words.model, reading);
  for (const auto& parameter : measure_parameters(decoder))
    lines.add({{"name", parameter.name},
               {"gradient", parameter.gradient / static_cast<double>(tokens)},
               {"weight", parameter.weight}});
  lines.print(output);
  return 0;
}

}  // namespace prism
