// prism analyse heads: what each head attends to.
#include <algorithm>
#include <vector>

#include "prism/analysis/head_patterns.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"

namespace prism {
namespace {

/// Random sequences for the induction score: enough for a mean accurate to 0.01.
constexpr int64_t kRepeatedRows = 16, kLongestHalf = 128;

constexpr const char* kHeadsHelp = R"(Measure what each head attends to.

The table shows the share of each head's attention, averaged over tokens, that goes to the previous token, the first
token, the token itself, earlier copies of the same token, and punctuation. These kinds overlap. The induction score is
measured on a sequence of random tokens that is repeated: for each token of the second copy, it is the share of the
attention on the token that followed this same token in the first copy. Heads with a high score, called induction
heads, let a model continue a sequence that it has seen once (Olsson et al. 2022). The largest value of each column is
highlighted. Models that attend to all tokens have no induction score.

  prism analyse heads runs/prism --data data/novels
  prism analyse heads runs/prism book.txt --figures heads
)";

std::vector<bool> punctuation_of(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<bool> flags(static_cast<size_t>(vocab_size));
  for (int64_t i = 0; i < std::min(vocab_size, tokenizer.vocab_size()); ++i) {
    const auto id = static_cast<int32_t>(i);
    flags[static_cast<size_t>(i)] = is_punctuation(tokenizer.decode({&id, 1}, /*skip_special=*/true));
  }
  return flags;
}

/// Measures induction on repeated random sequences of up to kLongestHalf tokens, fewer if the context is short.
InductionProbe measure_induction(Reading& reading) {
  const auto& config = reading.config();
  const int64_t half = std::min(kLongestHalf, config.context / 2);
  PRISM_CHECK(half >= 1, "analyse", "expected a context of at least 2 tokens; found {}; name another model.",
              config.context);
  InductionProbe probe(config.layers, half);
  ForwardContext context;
  context.probe = &probe;
  reading.model().forward(repeated_tokens(kRepeatedRows, half, reading.tokenizer().vocab_size(), /*seed=*/1), context);
  return probe;
}

}  // namespace

int run_analyse_heads(const Arguments& arguments) {
  return run_reading_analysis(arguments, {"heads", kHeadsHelp}, [](Reading& reading) {
    const torch::NoGradGuard no_gradients;
    HeadPatternProbe probe(reading.config().layers, punctuation_of(reading.tokenizer(), reading.config().vocab_size));
    reading.show([&](Pass& pass) {
      probe.read(pass.tokens_BT);
      pass.context.probe = &probe;
      reading.model().forward(pass.tokens_BT, pass.context);
    });
    if (reading.config().attention == "full") return lines_of(join_patterns(probe, nullptr));
    const auto induction = measure_induction(reading);
    return lines_of(join_patterns(probe, &induction));
  });
}

}  // namespace prism
