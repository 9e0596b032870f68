// Head budgets of decoders: what a prompt decides, and that nothing after it does.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "prism/models/batch.h"
#include "prism/models/decoder.h"
#include "tests/core/message_of.h"
#include "tests/models/configs.h"
#include "tests/models/forward_in_chunks.h"

namespace prism {
namespace {

Decoder make_budget_decoder(const std::string& kind, const std::string& schedule = "4x2",
                            const std::string& kv_schedule = "", double share = 0.5) {
  ModelConfig config;
  config.vocab_size = 50;
  config.d_model = 48;
  config.context = 32;
  config.schedule = schedule;
  config.kv_schedule = kv_schedule;
  config.ffn_width = 64;
  config.init_std = 0.4;
  config.allow_any = true;
  config.each.budget.kind = kind;
  config.each.budget.share = kind == "learned" ? 1 : share;
  expand_shorthand(config);
  complete(config);
  Decoder decoder(config);
  decoder->initialise(3);
  return decoder;
}

torch::Tensor random_text(int64_t rows, int64_t count, int64_t seed = 5) {
  torch::manual_seed(static_cast<uint64_t>(seed));
  return torch::randint(0, 50, {rows, count}, torch::kLong);
}

torch::Tensor prompts_of(const std::vector<int32_t>& lengths) {
  return torch::tensor(lengths, torch::kInt);
}

TEST(PromptBudgets, AreNotChangedByLaterTokens) {
  const torch::NoGradGuard no_gradients;
  for (const char* kind : {"learned", "fixed"}) {
    const auto decoder = make_budget_decoder(kind);
    const auto text = random_text(3, 20);
    auto perturbed = text.clone();
    perturbed.narrow(1, 12, 8).copy_(random_text(3, 8, 6));
    const auto run = [&](const torch::Tensor& tokens, const torch::Tensor& prompts_B) {
      Budgets budgets(decoder->config().budget_tau);
      ForwardContext context;
      context.prompts_B = prompts_B;
      context.budgets = &budgets;
      const auto hidden = decoder(tokens, context).narrow(1, 0, 12).clone();
      return std::pair(hidden, budgets.decisions());
    };
    const auto [before, decided] = run(text, prompts_of({12, 5, 1}));
    const auto [after, decided_after] = run(perturbed, prompts_of({12, 5, 1}));
    EXPECT_TRUE(torch::equal(before, after)) << kind;
    for (size_t l = 0; l < decided.size(); ++l) {
      EXPECT_TRUE(torch::equal(decided[l].share_B, decided_after[l].share_B));
      EXPECT_TRUE(torch::equal(decided[l].probability_BH, decided_after[l].probability_BH));
    }
    // A prompt that reaches the perturbed tokens would show it.
    EXPECT_FALSE(torch::equal(run(text, prompts_of({13, 5, 1})).first, run(perturbed, prompts_of({13, 5, 1})).first));
  }
}

TEST(PromptBudgets, StayInTheCacheWhileTokensFollow) {
  const torch::NoGradGuard no_gradients;
  for (const auto& [schedule, kv_schedule] :
       {std::pair{"4x2", ""}, std::pair{"6x2", "2x2"}, std::pair{"4x1,2x1", "2x1,1x1"}})
    for (const char* kind : {"learned", "fixed", "random"})
      for (const int64_t batch : {1, 3}) {
        const auto decoder = make_budget_decoder(kind, schedule, kv_schedule);
        const auto text = random_text(batch, 12);
        ForwardContext whole;
        whole.prompts_B = torch::full({1}, 7, torch::kInt);
        std::vector<torch::Tensor> alone;  // heads are drawn for a sequence as if it were the only one
        for (int64_t b = 0; b < batch; ++b) alone.push_back(decoder(text.narrow(0, b, 1), whole));
        const auto expected = decoder->head.logits(at::cat(alone));

        KvCache cache(decoder->config().layers, {.sequences = batch, .positions = 12});
        ForwardContext context;
        context.cache = &cache;
        std::vector<torch::Tensor> found = {decoder(text.narrow(1, 0, 7).contiguous(), context)};
        for (int64_t t = 7; t < 12; ++t) found.push_back(decoder(text.narrow(1, t, 1).contiguous(), context));
        const auto logits = decoder->head.logits(at::cat(found, 1));
        EXPECT_TRUE(torch::allclose(logits, expected, 1e-4, 1e-4))
            << kind << " " << schedule << " " << batch << " " << (logits - expected).abs().max().item<double>();
      }
}

TEST(PromptBudgets, KeepOnlyComputedHeadsInTheCache) {
  const torch::NoGradGuard no_gradients;
  const auto decoder = make_budget_decoder("fixed", "4x2", "", 0.25);
  KvCache cache(decoder->config().layers, {.sequences = 2, .positions = 8});
  ForwardContext context;
  context.cache = &cache;
  decoder(random_text(2, 4), context);
  // One of four heads of each of two sequences.
  for (const int64_t sequence : {0, 1}) {
    const auto stored = cache.append_kept(1, sequence, torch::zeros({1, 1, 1, 12}), torch::zeros({1, 1, 1, 12}));
    EXPECT_EQ(stored.k_BGSD.sizes(), (torch::IntArrayRef{1, 1, 5, 12}));
    EXPECT_EQ(cache.head_weights(1, sequence).kept_BH.sum().item<int64_t>(), 1);
  }
}

TEST(PromptBudgets, AreDecidedAgainForANewPrompt) {
  const torch::NoGradGuard no_gradients;
  const auto decoder = make_budget_decoder("learned");
  const auto fresh = [&](const torch::Tensor& text) {
    KvCache cache(decoder->config().layers, {.positions = 16});
    ForwardContext context;
    context.cache = &cache;
    return decoder(text, context);
  };
  KvCache cache(decoder->config().layers, {.positions = 16});
  ForwardContext context;
  context.cache = &cache;
  decoder(random_text(1, 9), context);
  cache.truncate(0);
  EXPECT_TRUE(torch::equal(decoder(random_text(1, 6, 8), context), fresh(random_text(1, 6, 8))));
}

TEST(PromptBudgets, RefusePromptsInChunks) {
  const torch::NoGradGuard no_gradients;
  auto decoder = make_budget_decoder("learned");
  KvCache cache(decoder->config().layers, {.positions = 16});
  ForwardContext context;
  context.cache = &cache;
  EXPECT_REFUSED(forward_in_chunks(decoder, random_text(1, 9), context, 4), "expected a prompt in one piece");
}

TEST(BatchTensors, PredictsWhatFollowsThePrompts) {
  Batch batch{
      .rows = 2, .context = 4, .tokens = {1, 2, 3, 4, 5, 6, 7, 8}, .labels = {2, 3, 4, 5, 6, 7, 8, 9}, .documents = {}};
  BatchTensors tensors(batch);
  tensors.set_prompts(prompts_of({1, 3}));
  EXPECT_TRUE(torch::equal(tensors.labels_BT, torch::tensor({{2, 3, 4, 5}, {-1, -1, 8, 9}}, torch::kLong)))
      << "the last token of the prompt predicts the first one after it";
  BatchTensors halves(batch);
  halves.predict_second_halves();
  EXPECT_TRUE(torch::equal(halves.labels_BT, torch::tensor({{-1, 3, 4, 5}, {-1, 7, 8, 9}}, torch::kLong)));
  EXPECT_EQ(halves.context.prompts_B[1].item<int64_t>(), 2);
}

TEST(PromptBudgets, DoNotReadPaddedPositions) {
  auto config = make_budget_decoder("learned")->config();
  config.layers[1].budget.summary = "padded";
  EXPECT_REFUSED(complete(config), "layer 1: expected budget.summary tokens in a language model");
}

}  // namespace
}  // namespace prism
