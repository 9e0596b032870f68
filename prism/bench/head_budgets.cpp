#include "prism/bench/head_budgets.h"

#include <cmath>
#include <limits>
#include <memory>

#include "prism/attention/attention.h"
#include "prism/core/error.h"
#include "prism/kernels/compute_type.h"
#include "prism/layers/initialise.h"
#include "prism/models/cost.h"

namespace prism {

void check(const BudgetShape& shape) {
  for (const auto& [name, value] :
       {std::pair{"batch", shape.batch}, {"tokens", shape.tokens}, {"d_model", shape.d_model}, {"heads", shape.heads}})
    PRISM_CHECK(value >= 1 && value <= 1 << 20, "bench", "{}: expected 1 to 1048576; found {}; change it.", name,
                value);
  PRISM_CHECK(shape.d_model % shape.heads == 0 && shape.d_model / shape.heads % 2 == 0, "bench",
              "expected heads of an even width that divide d_model = {}; found {} heads; change one.", shape.d_model,
              shape.heads);
  PRISM_CHECK(shape.share > 0 && shape.share <= 1, "bench",
              "expected a share of heads above 0 and at most 1; found {}; change it.", shape.share);
  constexpr int64_t kMostValues = int64_t{1} << 31;
  PRISM_CHECK(shape.batch <= kMostValues / shape.tokens / shape.d_model, "bench",
              "expected at most {} values in batch x tokens x d_model; found {} x {} x {}; lower one.", kMostValues,
              shape.batch, shape.tokens, shape.d_model);
}

namespace {

LayerConfig make_layer(const BudgetShape& shape, const std::string& budget) {
  LayerConfig layer;
  layer.heads = layer.kv_heads = shape.heads;
  layer.head_dim = shape.d_model / shape.heads;
  layer.rotary.kind = "none";
  layer.qkv_bias = layer.output_bias = true;
  layer.budget.kind = budget;
  return layer;
}

Attention make_attention(const AttentionOptions& options, const LayerConfig& layer) {
  Attention attention(options, layer, 0, std::make_shared<RotaryCache>());
  initialise(weights_of(attention), {}, /*seed=*/1);
  return attention;
}

/// Makes every text's share of heads `share`, whatever its tokens are.
void fix_share(Attention& attention, double share) {
  const torch::NoGradGuard no_gradients;
  // A little above, so that rounding does not lose a head; 1 is reached by rounding.
  const double above = std::min(share + 1e-4, 1 - 1e-9);
  attention.budget.share.weight.tensor().zero_();
  attention.budget.share.bias.tensor().fill_(share == 1 ? 40 : std::log(above / (1 - above)));
  attention.budget.scores.weight.tensor().normal_(0, 1);
}

}  // namespace

BudgetTiming bench_head_budgets(const BudgetShape& shape, torch::ScalarType dtype, int64_t rounds) {
  check(shape);
  const torch::NoGradGuard no_gradients;
  torch::manual_seed(1);
  const AttentionOptions options{.d_model = shape.d_model, .is_causal = false, .budgets = 1};
  const auto layer = make_layer(shape, "learned");
  auto budget = make_attention(options, layer);
  const auto plain = make_attention(options, make_layer(shape, "none"));
  fix_share(budget, shape.share);
  const auto x_BTD = torch::randn({shape.batch, shape.tokens, shape.d_model}).to(dtype);
  ForwardContext context;
  context.budget_tau = BudgetSchedule().tau(1);
  const auto medians = take_turns([&] { budget(x_BTD, context); }, [&] { plain(x_BTD, context); }, rounds);
  BudgetTiming row;
  row.dtype = compute_type_name(dtype);
  row.batch = shape.batch;
  row.tokens = shape.tokens;
  row.d_model = shape.d_model;
  row.heads = shape.heads;
  row.share = shape.share;
  Budgets decided(context.budget_tau);
  context.budgets = &decided;
  budget(x_BTD.slice(0, 0, 1), context);
  row.kept = decided.decisions()[0].kept_BH.sum().item<int64_t>();
  row.budget_ms = medians.prism_ms;
  row.plain_ms = medians.peer_ms;
  row.time_saving = 1 - row.budget_ms / row.plain_ms;
  const auto flops = [&](int64_t heads) {
    return attention_part_flops(options, layer, shape.tokens, static_cast<double>(heads));
  };
  row.flop_saving = 1 - (flops(row.kept) + budget_network_flops(layer, shape.d_model)) / flops(shape.heads);
  row.ratio = row.flop_saving > 0 ? row.time_saving / row.flop_saving : std::numeric_limits<double>::quiet_NaN();
  return row;
}

}  // namespace prism
