// prism analyse norms: the size of the residual stream before each layer, and dead units.
#include "prism/analysis/activations.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"

namespace prism {
namespace {

constexpr const char* kNormsHelp = R"(Measure the residual stream before each layer, and dead units.

The residual stream is what layers read and add to. Its root mean square over tokens and features should grow slowly
from layer to layer. Growth by large factors is an early sign that training will diverge. A unit of a feed-forward part
is dead if it was 0 for every token read, as happens with ReLU: those tokens give it no gradient, so it rarely recovers.

  prism analyse norms runs/prism --data data/novels
  prism analyse norms runs/prism book.txt --figures norms
)";

}  // namespace

int run_analyse_norms(const Arguments& arguments) {
  return run_reading_analysis(arguments, {"norms", kNormsHelp}, [](Reading& reading) {
    const torch::NoGradGuard no_gradients;
    ActivationProbe probe;
    reading.show_to(probe);
    auto lines = lines_of(probe.result());
    if (!lines.empty())
      lines.back()["reader"] = reading.config().classes > 0 ? "classifier" : "head";  // after the last layer
    return lines;
  });
}

}  // namespace prism
