// prism analyse heads: what each head attends to.
#include "prism/analysis/attention/head_patterns.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"

namespace prism {
namespace {

constexpr const char* kHeadsHelp = R"(Measure what each head attends to.

The table shows the share of each head's attention, averaged over tokens, that goes to the previous token, the first
token, the token itself, earlier copies of the same token, and punctuation. These kinds overlap. The induction score is
measured on random tokens that are repeated once, such as A B C A B C. It is the share of attention that a token of the
second copy gives to the token after its own first occurrence: the second A to the first B. Heads with a high score,
called induction heads, let a model continue a sequence that it has seen once (Olsson et al. 2022). The largest value of
each column is highlighted. Models that attend to all tokens have no induction score.

  prism analyse heads runs/prism --data data/novels
  prism analyse heads runs/prism book.txt --figures heads
)";

}  // namespace

int run_analyse_heads(const Arguments& arguments) {
  return run_reading_analysis(arguments, {"heads", kHeadsHelp}, [](Reading& reading) {
    const torch::NoGradGuard no_gradients;
    HeadPatternProbe probe(reading.config().layers,
                           punctuation_tokens(reading.tokenizer(), reading.config().vocab_size));
    reading.show([&](Pass& pass) {
      probe.read(pass.tokens_BT);
      pass.context.probe = &probe;
      reading.model().forward(pass.tokens_BT, pass.context);
    });
    if (reading.config().attention == "full") return lines_of(join_patterns(probe, nullptr));
    const auto induction = measure_induction(reading.model(), reading.tokenizer().vocab_size(), /*seed=*/1);
    return lines_of(join_patterns(probe, &induction));
  });
}

}  // namespace prism
