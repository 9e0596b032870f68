// prism analyse gradients: how large the gradient of each parameter is beside its values.
#include "prism/cli/analyse.h"
#include "prism/cli/analysis_output.h"
#include "prism/kernels/euclidean_norm.h"

namespace prism {
namespace {

constexpr const char* kGradientsHelp = R"(how large the gradient of each parameter is beside its values

The gradient of the mean loss of what is read, parameter by parameter: its Euclidean norm, that of the values, and one
over the other. Plain gradient descent changes a parameter by that share times the learning rate; parameters whose
share is a hundredth of their neighbours' hardly learn. What an optimizer really did is recorded while a run trains
(train.diagnose_steps) and shown by its report.

  prism analyse gradients runs/prism --data data/novels --split train --sequences 32 --figures gradients
)";

/// Of the mean loss of all that is read.
std::vector<Json> measure_gradients(Reading& reading) {
  auto decoder = reading.model();
  int64_t tokens = 0;
  reading.show(
      [&](BatchTensors& batch) {
        // Of the sum over tokens, so that batches of fewer rows count as what they are.
        const auto loss = decoder->head.loss(decoder(batch.tokens_BT, batch.context), batch.labels_BT);
        (loss * static_cast<double>(batch.labels_BT.numel())).backward();
        tokens += batch.labels_BT.numel();
      },
      /*labelled=*/true);
  std::vector<Json> lines;
  const torch::NoGradGuard no_gradients;
  for (const auto& entry : decoder->weights())
    for (const auto& tensor : entry.tensors) {
      const auto& values = entry.weight.tensor();
      Json line = {{"name", tensor.name}};
      if (entry.layer()) line["layer"] = *entry.layer();
      if (entry.layer()) line["part"] = tensor.part;
      line["gradient"] = euclidean_norm(tensor.of(values.grad())).item<double>() / static_cast<double>(tokens);
      line["weight"] = euclidean_norm(tensor.of(values)).item<double>();
      lines.push_back(std::move(line));
    }
  return lines;
}

}  // namespace

int run_analyse_gradients(const Arguments& arguments) {
  return run_reading_analysis(arguments, {"gradients", kGradientsHelp}, measure_gradients);
}

}  // namespace prism
