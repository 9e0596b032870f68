// prism analyse gradients: the norm of each parameter's gradient relative to its values.
#include "prism/analysis/gradients.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"

namespace prism {
namespace {

constexpr const char* kGradientsHelp = R"(Measure the norm of each parameter's gradient relative to its values.

Computes the gradient of the loss, averaged over the tokens of the input (for a classifier: over its examples). For each
parameter, the table shows the Euclidean norm of the gradient, the norm of the values, and their ratio. A step of plain
gradient descent changes a parameter, relative to its norm, by this ratio times the learning rate. AdamW and Muon
rescale gradients; what they really change is recorded during training (train.diagnose_steps) and shown by prism report.

  prism analyse gradients runs/prism --data data/novels --split train --sequences 32 --figures gradients
)";

}  // namespace

int run_analyse_gradients(const Arguments& arguments) {
  return run_reading_analysis(arguments, {"gradients", kGradientsHelp, /*has_loss=*/true}, [](Reading& reading) {
    GradientSum sum(reading.model().weights());
    reading.show(
        [&](Pass& pass) {
          const auto [loss, labels] = reading.loss(pass);
          sum.add(loss, labels);
        },
        /*labelled=*/true);
    return lines_of(sum.norms());
  });
}

}  // namespace prism
