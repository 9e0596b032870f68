// How prism eval prints the perplexity of a text, and the difference of two models on it.
//
//   print_perplexity(words, perplexity_of(task, items, answers, model), {.model = words.model, ...});
#pragma once

#include <string>
#include <vector>

#include "prism/cli/evaluation/eval.h"
#include "prism/core/json.h"
#include "prism/evaluation/perplexity.h"

namespace prism {

/// How a perplexity was measured.
struct PerplexityCourse {
  std::string model, dtype;
  std::string attention;  ///< over prompts, as one line; empty: dense
  Json prefill;           ///< the same as an object
  double seconds = 0;     ///< 0: not known
  int64_t context = 0;    ///< of the model, in tokens
};

/// As a table, or as JSON if `words.json` is set.
void print_perplexity(const EvalWords& words, const PerplexityResult& result, const PerplexityCourse& course);

/// The loss of a minus that of b on the same documents.
/// @param model, against  what a and b are called.
/// @param divergences     KL(b || a) of each scored token in nats; empty: not known.
void print_perplexity_difference(const EvalWords& words, const std::string& model, const std::string& against,
                                 const PerplexityResult& a, const PerplexityResult& b,
                                 const std::vector<double>& divergences);

}  // namespace prism
