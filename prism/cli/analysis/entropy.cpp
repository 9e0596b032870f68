// prism analyse entropy: how evenly each head spreads its attention.
#include "prism/analysis/attention/attention_entropy.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"

namespace prism {
namespace {

constexpr const char* kEntropyHelp = R"(Measure how evenly each head spreads its attention.

In every head, a token attends to itself and the tokens before it; with full attention (classifiers), to all tokens. Its
weights w sum to 1. Their entropy, - sum w ln w, is 0 nats if all weight is on one token and ln n if it is spread evenly
over n tokens. The table shows the mean of each head over all tokens. A head near 0 looks up single tokens. A head whose
entropy is close to the mean of ln n spreads its attention almost evenly: it averages over the past, or has not learned
where to look.

  prism analyse entropy runs/prism --data data/novels --sequences 64
  prism analyse entropy runs/prism book.txt --tokens 256 --figures entropy
  prism analyse entropy runs/prism --data data/novels --json > entropy.jsonl
  prism report runs/prism --analysis entropy.jsonl
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
