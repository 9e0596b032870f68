// Chooses the next token from a model's logits.
//
//   Sampler sampler({.temperature = 0.8, .top_k = 40, .top_p = 0.95, .seed = 1});
//   int32_t id = sampler.pick(logits_V);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prism/core/random.h"

namespace prism {

struct SamplerOptions {
  double temperature = 0.8;
  int64_t top_k = 40;
  double top_p = 0.95;
  int64_t seed = 1;
  template <class Visitor>
  void visit(Visitor& v) {
    v("temperature", temperature,
      "divides the logits: below 1 sharpens, above 1 flattens; 0: always take the likeliest token");
    v("top_k", top_k, "sample from this many likeliest tokens; 0: from all");
    v("top_p", top_p, "sample from the fewest likeliest tokens whose probabilities sum to at least this; 1: from all");
    v("seed", seed, "seed of sampling; the same seed gives the same text");
  }
};

/// Draws token ids.
///
/// The steps, in the order of Hugging Face's transformers:
///  - divide the logits by the temperature,
///  - keep the top_k likeliest tokens,
///  - renormalise their probabilities and keep the fewest likeliest tokens whose sum reaches top_p,
///  - draw one in proportion to its probability.
/// At temperature 0 the likeliest token is taken without a draw. Of equal logits the lower id counts as likelier, so
/// exactly top_k are kept. Differs: transformers keeps all tokens that equal the last one.
class Sampler {
 public:
  /// @throws InputError for a temperature or top_k below 0, or a top_p outside (0, 1].
  explicit Sampler(const SamplerOptions& options);

  /// @param logits  [V]; -inf forbids a token.
  /// @return        the token's id, its index in `logits`.
  /// @throws FailedError if a logit is NaN or +inf, or if all are -inf; InputError if there are none.
  int32_t pick(std::span<const float> logits);

 private:
  struct Candidate {
    float logit;
    int32_t id;
    double weight;  ///< probability times a constant
  };
  static bool likelier(const Candidate& a, const Candidate& b);

  void keep_top_k();
  void weigh(float highest);
  void keep_top_p();
  int32_t draw();

  SamplerOptions options_;
  Random random_;
  std::vector<Candidate> candidates_;
};

}  // namespace prism
