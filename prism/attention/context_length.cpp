#include "prism/attention/context_length.h"

#include <cmath>

#include "prism/core/error.h"

namespace prism {
namespace {

/// The context for which the positions are not scaled.
int64_t unscaled_context(const RotaryConfig& rotary, int64_t before) {
  if (rotary.scaling == "none") return before;
  if (rotary.original_context > 0) return rotary.original_context;
  return std::llround(static_cast<double>(before) / rotary.factor);
}

}  // namespace

void lengthen(RotaryConfig& rotary, int64_t before, const ContextOptions& options) {
  const auto& scaling = options.rope_scaling;
  PRISM_CHECK(scaling == "yarn" || scaling == "linear", "rotary",
              "--rope-scaling: expected yarn or linear; found {}; choose one of them.", scaling);
  PRISM_CHECK((rotary.scaling == "none" || rotary.scaling == scaling) && rotary.factors.empty(), "rotary",
              "--rope-scaling: expected a model whose positions are not scaled, or scaled by {}; found {}; leave out "
              "the option.",
              scaling, rotary.factors.empty() ? rotary.scaling : "divisors of the angles");
  const int64_t original = unscaled_context(rotary, before);
  PRISM_CHECK(options.context > original, "rotary",
              "--rope-scaling: expected a --context above {}, that of the model without scaling; found {}; raise it or "
              "leave out --rope-scaling.",
              original, options.context);
  const double most = scaling == "yarn" ? kMostYarnFactor : kMostLinearFactor;
  const double factor = static_cast<double>(options.context) / static_cast<double>(original);
  PRISM_CHECK(factor <= most, "rotary",
              "--context: expected at most {} tokens, {} times the model's, for which {} is made; found {}; lower it.",
              static_cast<int64_t>(most) * original, most, scaling, options.context);
  rotary.scaling = scaling;
  rotary.factor = factor;
  rotary.original_context = scaling == "yarn" ? original : 0;  // linear does not use it
  rotary.attention_factor = 0;                                 // that of the new factor
}

}  // namespace prism
