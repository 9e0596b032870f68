// prism analyse heads: what each head attends to.
#include <algorithm>
#include <vector>

#include "prism/analysis/head_patterns.h"
#include "prism/cli/analyse.h"
#include "prism/cli/analysis_output.h"

namespace prism {
namespace {

/// Random sequences for the induction score: enough that its mean is good to a hundredth.
constexpr int64_t kRepeatedRows = 16, kLongestHalf = 128;

constexpr const char* kHeadsHelp = R"(what each head attends to

The share of each head's attention, in the mean over tokens, that goes to the token before, to the first one, to the
token that asks itself, to earlier tokens that are the same, and to punctuation. Kinds overlap. The induction score is
measured on random tokens that are repeated: the share that goes to what followed the same token the first time, by
which a model can go on with what it has seen once (Olsson et al. 2022). The largest of each column stands out.

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

/// Over random sequences that are repeated, as long as the context has place for.
InductionProbe measure_induction(Reading& reading) {
  const auto& config = reading.config();
  const int64_t half = std::min(kLongestHalf, config.context / 2);
  PRISM_CHECK(half >= 1, "analyse", "expected a context of at least 2 tokens; found {}; name another model.",
              config.context);
  InductionProbe probe(config.layers, half);
  ForwardContext context;
  context.probe = &probe;
  reading.model()(repeated_tokens(kRepeatedRows, half, reading.tokenizer().vocab_size(), /*seed=*/1), context);
  return probe;
}

}  // namespace

int run_analyse_heads(const Arguments& arguments) {
  return run_reading_analysis(arguments, {"heads", kHeadsHelp}, [](Reading& reading) {
    const torch::NoGradGuard no_gradients;
    HeadPatternProbe probe(reading.config().layers, punctuation_of(reading.tokenizer(), reading.config().vocab_size));
    reading.show([&](BatchTensors& batch) {
      probe.read(batch.tokens_BT);
      batch.context.probe = &probe;
      reading.model()(batch.tokens_BT, batch.context);
    });
    return lines_of(join_patterns(probe, measure_induction(reading)));
  });
}

}  // namespace prism
