#include "prism/bench/budget_savings.h"

#include <gtest/gtest.h>

#include <set>

#include "prism/attention/attention.h"
#include "prism/evaluation/classification.h"
#include "prism/models/cost.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/data/labelled/made_classifier.h"
#include "tests/data/labelled/made_examples.h"

namespace prism {
namespace {

TEST(BudgetSavings, CountsTheFlopsOfEachText) {
  const TemporaryFolder folder;
  make_examples(folder.path() / "data", 100);
  const LabelledDataset test(folder.path() / "data", "test");
  const auto classifier = make_classifier({.budget = "fixed"});
  const auto savings = bench_budget_savings(classifier, test, {.batch = 8, .most = 100, .rounds = 1});
  EXPECT_EQ(savings.texts, 50);
  EXPECT_DOUBLE_EQ(savings.share, 0.5);
  EXPECT_DOUBLE_EQ(savings.kept_share, 0.5);
  // Half the heads of both layers for every text, and the network of z, 2 x 16 x 4 FLOPs, in each layer.
  EXPECT_NEAR(savings.with.attention_flops, savings.without.attention_flops / 2 + 2 * 2 * 16 * 4, 1e-6);
  EXPECT_NEAR(savings.without.model_flops - savings.with.model_flops,
              savings.without.attention_flops - savings.with.attention_flops, 1e-6);
  double sum = 0;
  for (int64_t i = 0; i < test.size(); ++i) {
    const auto tokens = static_cast<double>(test.tokens(i).size());
    sum += 2 * tokens * (2 * 16 * 64 + 4 * tokens * 16);  // two layers: 4 projections of 16 x 16, q k^T and p v
  }
  EXPECT_NEAR(savings.without.attention_flops, sum / 50, 1e-6);
  EXPECT_EQ(savings.with.parameters - savings.without.parameters, 2 * (16 * 4 + 4));
  EXPECT_GT(savings.with.ms, 0);
  const auto again = bench_budget_savings(classifier, test, {.batch = 8, .most = 100, .rounds = 1});
  EXPECT_EQ(again.with.memory_bytes, savings.with.memory_bytes);
}

TEST(BudgetSavings, CountsTheHeadsOfEachTextOnItsOwn) {
  const TemporaryFolder folder;
  make_examples(folder.path() / "data", 100);
  const LabelledDataset test(folder.path() / "data", "test");
  const auto classifier = make_classifier({.budget = "learned", .kv_heads = 2});
  {
    // Shares of their own for every text.
    const torch::NoGradGuard no_gradients;
    torch::manual_seed(9);
    for (const auto& block : classifier->blocks) block->attention.budget.share.weight.tensor().normal_(0, 20);
  }
  const auto savings = bench_budget_savings(classifier, test, {.batch = 8, .most = 100, .rounds = 1});
  double sum = 0;
  std::set<int64_t> counts;
  for (int64_t i = 0; i < test.size(); ++i) {
    auto batch = pad_texts({test.tokens(i)}, 24);
    const auto tokens = static_cast<double>(batch.lengths[0]);
    for (const auto& decided : classify(classifier, ExampleTensors(batch)).budgets) {
      // Two key/value heads, each with two of the four query heads: a pair is computed if either is kept.
      const bool* kept = decided.kept_BH.const_data_ptr<bool>();
      const int64_t pairs = static_cast<int64_t>(kept[0] || kept[1]) + static_cast<int64_t>(kept[2] || kept[3]);
      counts.insert(pairs);
      const double projections = 2 * tokens * 16 * (16 + 8 + 8 + 16), products = 4 * tokens * tokens * 16;
      sum += static_cast<double>(pairs) / 2 * (projections + products) + 2 * 16 * (16 + 1 + 4);
    }
  }
  EXPECT_EQ(counts, (std::set<int64_t>{1, 2}));
  EXPECT_NEAR(savings.with.attention_flops, sum / 50, 1e-6);
}

TEST(BudgetSavings, NeedsHeadBudgets) {
  const TemporaryFolder folder;
  make_examples(folder.path() / "data", 100);
  const LabelledDataset test(folder.path() / "data", "test");
  EXPECT_REFUSED(bench_budget_savings(make_classifier({.budget = "none"}), test, {}),
                 "expected a classifier with head budgets");
  EXPECT_REFUSED(bench_budget_savings(make_classifier({.budget = "learned"}), test, {.batch = 0}),
                 "expected a batch of 1");
}

TEST(AttentionPart, AddsUpToTheModelsFlops) {
  // Of one layer: the model without its feed-forward part and head, averaged over the positions of the context.
  for (const bool causal : {true, false}) {
    const auto classifier = make_classifier({.budget = "none"});
    auto config = classifier->config();
    config.attention = causal ? "causal" : "full";
    const auto cost = model_cost(config);
    double parts = 0, ffn = 0;
    for (const auto& layer : config.layers) {
      parts += attention_part_flops({.d_model = config.d_model, .is_causal = causal}, layer, config.context,
                                    static_cast<double>(layer.kv_heads));
      ffn += 2 * 3 * 16 * 24;  // SwiGLU
    }
    EXPECT_NEAR(static_cast<double>(cost.flops_per_token * config.context) - ffn * 24, parts, 1e-6);
    auto layer = config.layers.back();
    const AttentionOptions options{.d_model = config.d_model, .is_causal = causal};
    const double all = attention_part_flops(options, layer, 24, 4);
    EXPECT_NEAR(attention_part_flops(options, layer, 24, 1), all / 4, 1e-6);
    layer.output_projection = false;
    const double keys = causal ? 12.5 : 24;
    EXPECT_NEAR(attention_part_flops(options, layer, 24, 1), 24 * (2 * 16 * 48 + 4 * 16 * keys / 4), 1e-6)
        << "all heads are projected";
  }
}

}  // namespace
}  // namespace prism
