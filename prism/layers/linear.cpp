#include "prism/layers/linear.h"

#include <utility>

namespace prism {

Linear::Linear(LinearOptions options) : options_(std::move(options)) {
  int64_t out = 0;
  for (const auto& part : options_.out) out += static_cast<int64_t>(part.names.size()) * part.rows;
  weight = Weight({out, options_.in});
  if (options_.bias) bias = Weight({out});
}

Linear::Linear(int64_t in, int64_t out) : Linear({.in = in, .out = {{{""}, out}}}) {}

void Linear::visit(WeightVisitor& v) const {
  WeightTraits traits{.role = WeightRole::matrix,
                      .rows = options_.out,
                      .fan_in = options_.in,
                      .into_stream = options_.into_stream,
                      .feed_forward = options_.feed_forward,
                      .products = options_.products,
                      .training_only = options_.training_only};
  v.weight("weight", weight, traits);
  traits.role = WeightRole::bias;
  traits.products = 0;
  v.weight("bias", bias, traits);
}

}  // namespace prism
