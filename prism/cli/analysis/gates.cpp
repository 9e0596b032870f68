// prism analyse gates: how many gates of the feed-forward parts are closed, and along which stretches they open.
#include "prism/analysis/feed_forward/gates.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"
#include "prism/core/error.h"

namespace prism {
namespace {

constexpr const char* kGatesHelp = R"(Measure how many gates of the feed-forward parts are closed, and how they open.

A gate is the factor that multiplies a unit's value: silu(W_gate x), or silu(W_gate x * silu(W_inner x)) for g2lu. It is
closed for a token if its magnitude is below 1% of the root mean square of its layer's gates. A layer with many closed
gates uses few of its units for each token.

To see how gates open, the input of the feed-forward part is moved in a straight line from that of one token to that of
another. A band is a stretch of this line on which a unit's gate exceeds half of its largest magnitude on the line. A
single gate opens once and stays open; a gate within a gate can open for a narrow band. The table shows the number of
bands of a unit, and their width as a share of the line: means over at most 64 pairs of tokens.

  prism analyse gates runs/mirrored book.txt
  prism analyse gates runs/mirrored --data data/novels --json
)";

}  // namespace

int run_analyse_gates(const Arguments& arguments) {
  return run_reading_analysis(arguments, {"gates", kGatesHelp}, [](Reading& reading) {
    const torch::NoGradGuard no_gradients;
    GateProbe probe(reading.model());
    reading.show_to(probe);
    probe.count();
    reading.show_to(probe);
    const auto found = probe.result();
    PRISM_CHECK(!found.empty(), "analyse",
                "expected a model with gates (ffn.kind swiglu or g2lu); found none; name another model.");
    return lines_of(found);
  });
}

}  // namespace prism
