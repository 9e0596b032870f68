// prism analyse norms: how large the residual stream is in front of each layer, and which units are dead.
#include "prism/analysis/activations.h"
#include "prism/cli/analyse.h"
#include "prism/cli/analysis_output.h"

namespace prism {
namespace {

constexpr const char* kNormsHelp = R"(how large the residual stream is in front of each layer, and which units are dead

The residual stream is what layers read and add to. Its root mean square over tokens and features should grow slowly
from layer to layer; one that grows by large factors announces a training that diverges. A unit of a feed-forward part
is dead if it was 0 for every token: it has no gradient and does not come back.

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
    if (!lines.empty()) lines.back()["reader"] = "head";  // behind the last layer
    return lines;
  });
}

}  // namespace prism
