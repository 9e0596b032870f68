// prism analyse entropy: how evenly each head spreads its attention.
#include "prism/analysis/attention_entropy.h"
#include "prism/cli/analyse.h"
#include "prism/cli/analysis_output.h"

namespace prism {
namespace {

constexpr const char* kEntropyHelp = R"(how evenly each head spreads its attention

Each head gives a token weights, adding up to 1, for itself and the tokens before it. Their entropy, - sum w ln w, is 0
nats where all of it goes to one token and ln n where it is spread evenly over n. The table shows each head's mean over
all tokens. Heads near 0 look things up; heads near the mean of ln n have not learned where to look, or gather.

  prism analyse entropy runs/prism --data data/novels --sequences 64
  prism analyse entropy runs/prism book.txt --tokens 256 --figures entropy
  prism analyse entropy runs/prism --data data/novels --json > entropy.jsonl; prism report runs/prism --analysis entropy.jsonl
)";

}  // namespace

int run_analyse_entropy(const Arguments& arguments) {
  return run_reading_analysis(arguments, {"entropy", kEntropyHelp}, [](Reading& reading) {
    const torch::NoGradGuard no_gradients;
    AttentionEntropyProbe probe(reading.config().layers);
    reading.show_to(probe);
    return lines_of(probe.result());
  });
}

}  // namespace prism
