// prism analyse gradients: the norm of each parameter's gradient relative to its values.
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"
#include "prism/kernels/euclidean_norm.h"

namespace prism {
namespace {

constexpr const char* kGradientsHelp = R"(Measure the norm of each parameter's gradient relative to its values.

Computes the gradient of the mean loss over the input: of the tokens, or of a classifier's examples. For each
parameter, the table shows the Euclidean norm of the gradient, the norm of the values, and their ratio. A step of plain
gradient descent changes a parameter, relative to its norm, by this ratio times the learning rate. A parameter whose
ratio is a hundredth of its neighbours' hardly learns. What the optimizer really did is recorded during training
(train.diagnose_steps) and shown by prism report.

  prism analyse gradients runs/prism --data data/novels --split train --sequences 32 --figures gradients
)";

/// Gradients of the mean loss over all of the input.
std::vector<Json> measure_gradients(Reading& reading) {
  int64_t labels = 0;
  reading.show(
      [&](Pass& pass) {
        // Summed over labels, so that a batch counts in proportion to its rows.
        const auto [loss, count] = reading.loss(pass);
        (loss * static_cast<double>(count)).backward();
        labels += count;
      },
      /*labelled=*/true);
  std::vector<Json> lines;
  const torch::NoGradGuard no_gradients;
  for (const auto& entry : reading.model().weights())
    for (const auto& tensor : entry.tensors) {
      const auto& values = entry.weight.tensor();
      Json line = {{"name", tensor.name}};
      if (entry.layer()) line["layer"] = *entry.layer();
      if (entry.layer()) line["part"] = tensor.part;
      const double norm = values.grad().defined() ? euclidean_norm(tensor.of(values.grad())).item<double>() : 0;
      line["gradient"] = norm / static_cast<double>(labels);
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
