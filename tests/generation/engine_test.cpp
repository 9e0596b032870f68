// The engine computes each sequence of a batch as if it were alone.
#include "prism/generation/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "prism/core/error.h"
#include "tests/core/message_of.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

using Logits = std::vector<std::vector<float>>;

std::vector<int32_t> random_prompt(int64_t tokens, int64_t seed) {
  torch::manual_seed(static_cast<uint64_t>(seed));
  const auto ids = torch::randint(kTinyVocab, {tokens}, torch::kInt);
  return {ids.const_data_ptr<int32_t>(), ids.const_data_ptr<int32_t>() + tokens};
}

/// Takes the likeliest token `count` times, and keeps all logits.
EngineRequest likeliest_of(std::vector<int32_t> prompt, size_t count, Logits& seen) {
  return {.tokens = std::move(prompt), .next = [count, &seen](std::span<const float> logits_V) {
            seen.emplace_back(logits_V.begin(), logits_V.end());
            const auto best = std::max_element(logits_V.begin(), logits_V.end()) - logits_V.begin();
            return seen.size() == count ? std::nullopt : std::optional(static_cast<int32_t>(best));
          }};
}

void run(Engine& engine) {
  while (!engine.is_idle()) engine.step();
}

Logits alone(const Decoder& decoder, const std::vector<int32_t>& prompt, size_t count, Prefill* prefill = nullptr) {
  Logits seen;
  Engine engine(decoder, {.prefill = prefill});
  engine.submit(likeliest_of(prompt, count, seen));
  run(engine);
  return seen;
}

/// The largest difference of two sequences' logits.
double distance(const Logits& a, const Logits& b) {
  EXPECT_EQ(a.size(), b.size());
  double most = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    for (size_t j = 0; j < a[i].size(); ++j) most = std::max(most, std::abs(static_cast<double>(a[i][j]) - b[i][j]));
  return most;
}

/// Products of LibTorch sum in another order in another batch.
constexpr double kRounding = 1e-3;

TEST(Engine, GivesTheLogitsOfOnePassOverTheWholeText) {
  const torch::NoGradGuard no_gradients;
  auto decoder = tiny_decoder(400);
  const auto prompt = random_prompt(300, 1);
  const auto found = alone(decoder, prompt, 20);
  auto text = prompt;
  for (const auto& logits : found) {
    const auto ids = torch::tensor(std::vector<int64_t>(text.begin(), text.end()), torch::kLong).unsqueeze(0);
    const auto hidden = decoder(ids, {});
    const auto expected = decoder->head.logits(hidden.narrow(1, hidden.size(1) - 1, 1)).flatten();
    const auto own = torch::tensor(logits);
    EXPECT_LT((own - expected).abs().max().item<double>(), kRounding) << text.size();
    text.push_back(static_cast<int32_t>(own.argmax().item<int64_t>()));
  }
}

TEST(Engine, GivesASequenceTheSameBitsInEveryBatch) {
  for (const bool freezes : {true, false}) {
    auto decoder = freezes ? frozen_decoder(1000) : tiny_decoder(1000);
    std::vector<std::vector<int32_t>> prompts;
    for (const int64_t tokens : {1, 2, 7, 127, 128, 129, 300, 700}) prompts.push_back(random_prompt(tokens, tokens));
    std::vector<Logits> together(prompts.size());
    Engine engine(decoder, {.sequences = 5, .step_tokens = 256});
    for (size_t i = 0; i < prompts.size(); ++i) engine.submit(likeliest_of(prompts[i], 5 + 3 * i, together[i]));
    run(engine);
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto single = alone(decoder, prompts[i], 5 + 3 * i);
      if (freezes && PackedWeight::prompt_type()) {
        EXPECT_EQ(together[i], single) << prompts[i].size();
      }
      EXPECT_LT(distance(together[i], single), kRounding) << prompts[i].size();
    }
  }
}

TEST(Engine, GivesAPromptTheSameBitsWhereverItIsCut) {
  auto decoder = frozen_decoder(600);
  const auto prompt = random_prompt(385, 1);
  const auto whole = alone(decoder, prompt, 3);
  for (const int64_t chunk : {1, 2, 128, 256, 384}) {
    Prefill cuts({.chunk = chunk});
    if (PackedWeight::prompt_type()) {
      EXPECT_EQ(alone(decoder, prompt, 3, &cuts), whole) << chunk;
    }
    EXPECT_LT(distance(alone(decoder, prompt, 3, &cuts), whole), kRounding) << chunk;
  }
}

TEST(Engine, ComputesWhatAPromptHasBeyondTheLastOne) {
  auto decoder = frozen_decoder(600);
  auto prompt = random_prompt(300, 1);
  Engine engine(decoder);
  Logits first, second;
  auto request = likeliest_of(prompt, 4, first);
  request.keeps = true;
  const auto sequence = engine.submit(request);
  run(engine);
  prompt.resize(260);
  const auto more = random_prompt(200, 2);
  prompt.insert(prompt.end(), more.begin(), more.end());
  request = likeliest_of(prompt, 4, second);
  engine.resume(sequence, request);
  std::vector<Engine::Ended> ended;
  while (ended.empty()) ended = engine.step();
  EXPECT_EQ(ended[0].sequence, sequence);
  EXPECT_EQ(ended[0].counts.reused, 260);
  EXPECT_EQ(ended[0].counts.steps, 3);
  EXPECT_EQ(second, alone(decoder, prompt, 4)) << "behind a cached prefix";
}

TEST(Engine, ForksASequenceThatStaysAsItIs) {
  for (const bool freezes : {true, false}) {
    auto decoder = freezes ? frozen_decoder(600) : tiny_decoder(600);
    const auto prefix = random_prompt(200, 1);
    Engine engine(decoder, {.sequences = 2, .step_tokens = 256});
    const auto sequence = engine.submit({.tokens = prefix, .keeps = true});
    run(engine);
    std::vector<std::vector<int32_t>> prompts;
    std::vector<Logits> found(4);
    for (const int64_t more : {1, 2, 3, 4}) {
      auto& prompt =
          prompts.emplace_back(prefix.begin(), prefix.end() - more);  // the third fork ends where the first differs
      const auto rest = random_prompt(150, more);
      prompt.insert(prompt.end(), rest.begin(), rest.end());
      engine.fork(sequence, likeliest_of(prompt, 6, found[static_cast<size_t>(more) - 1]));
    }
    run(engine);
    EXPECT_EQ(engine.cached(sequence).size(), 200u);
    engine.cancel(sequence);
    for (size_t i = 0; i < 4; ++i) {
      const auto single = alone(decoder, prompts[i], 6);
      EXPECT_LT(distance(found[i], single), kRounding) << i;
      if (freezes && PackedWeight::prompt_type()) {
        EXPECT_EQ(found[i], single) << i;
      }
    }
  }
}

TEST(Engine, HandsOverTheHiddenStatesOfPromptsAndDecodedTokens) {
  const torch::NoGradGuard no_gradients;
  auto decoder = tiny_decoder(400);
  const auto text = random_prompt(300, 1);
  const auto ids = torch::tensor(std::vector<int64_t>(text.begin(), text.end()), torch::kLong).unsqueeze(0);
  const auto expected_ND = decoder(ids, {})[0];
  for (const bool decodes : {false, true}) {
    Engine engine(decoder, {.step_tokens = 128});
    int64_t next = 250;
    engine.submit({.tokens = text,
                   .take_hidden =
                       [&](int64_t first, const torch::Tensor& hidden_ND) {
                         EXPECT_EQ(first, next);
                         next += hidden_ND.size(0);
                         const auto expected = expected_ND.narrow(0, first, hidden_ND.size(0));
                         EXPECT_LT((hidden_ND - expected).abs().max().item<double>(), kRounding);
                       },
                   .hidden_from = 250,
                   .decodes_prompt = decodes});
    int64_t steps = 0;
    for (; !engine.is_idle(); ++steps) engine.step();
    EXPECT_EQ(next, 300);
    EXPECT_EQ(steps, decodes ? 300 : 3);
  }
}

TEST(Engine, ServesHeadBudgetsAndSelectorsSequenceBySequence) {
  Prefill sparse({.selector = "spectral", .settings = {{"p", 0.5}, {"recent", 1}, {"block_size", 32}}});
  for (const bool selects : {true, false}) {
    auto decoder = selects ? tiny_decoder(700) : tiny_budget_decoder("learned", 700);
    auto* prefill = selects ? &sparse : nullptr;
    std::vector<Logits> together(3);
    std::vector<std::vector<int32_t>> prompts = {random_prompt(200, 1), random_prompt(600, 2), random_prompt(33, 3)};
    Engine engine(decoder, {.step_tokens = 128, .prefill = prefill});
    for (size_t i = 0; i < 3; ++i) engine.submit(likeliest_of(prompts[i], 6, together[i]));
    run(engine);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_LT(distance(together[i], alone(decoder, prompts[i], 6, prefill)), kRounding) << selects << i;
  }
}

TEST(Engine, KeepsKeysAndValuesInInt8NearThoseOfProducts) {
  auto decoder = frozen_decoder(600);
  const auto prompt = random_prompt(300, 1);
  const auto exact = alone(decoder, prompt, 8);
  Logits seen;
  Engine engine(decoder, {.cache_type = torch::kChar});
  engine.submit(likeliest_of(prompt, 8, seen));
  run(engine);
  double largest = 0;
  for (const float logit : exact[0]) largest = std::max(largest, std::abs(static_cast<double>(logit)));
  EXPECT_GT(distance({seen[0]}, {exact[0]}), 0);
  // Random weights this large make attention sharp, which multiplies the error of 8 bits; other tokens' logits are
  // farther away than the largest logit.
  EXPECT_LT(distance({seen[0]}, {exact[0]}), 0.25 * largest);
}

TEST(Engine, SlidesAFullContextByComputingItsEndAgain) {
  auto decoder = tiny_decoder(32);
  Engine engine(decoder);
  Logits seen;
  auto request = likeliest_of(random_prompt(20, 1), 40, seen);
  request.slide = 16;
  engine.submit(request);
  std::vector<Engine::Ended> ended;
  while (ended.empty()) ended = engine.step();
  EXPECT_EQ(seen.size(), 40u);
  EXPECT_EQ(ended[0].counts.slides, 2) << "after 12 new tokens, then after 16 more";
}

TEST(Engine, ServesTheOthersWhenARequestThrowsOrIsCancelled) {
  auto decoder = frozen_decoder(200);
  Engine engine(decoder);
  Logits seen, never;
  engine.submit({.tokens = {1, 2}, .next = [](std::span<const float>) -> std::optional<int32_t> {
                   throw std::runtime_error("no more");
                 }});
  const auto cancelled = engine.submit(likeliest_of({5, 6}, 50, never));
  engine.submit(likeliest_of({1, 2, 3}, 9, seen));
  EXPECT_THROW(engine.step(), std::runtime_error);
  engine.cancel(cancelled);
  run(engine);
  EXPECT_EQ(never.size(), 1u);
  EXPECT_EQ(seen, alone(decoder, {1, 2, 3}, 9));
  EXPECT_TRUE(engine.step().empty()) << "nothing is left";
}

TEST(Engine, RefusesWrongRequestsAndOptions) {
  auto decoder = tiny_decoder(64);
  Engine engine(decoder);
  EXPECT_REFUSED(engine.submit({.tokens = {}}), "expected a prompt of at least one token");
  EXPECT_REFUSED(engine.submit({.tokens = {1, 2}, .unread = 2}), "expected a prompt of at least one token");
  EXPECT_REFUSED(engine.submit({.tokens = random_prompt(65, 1)}), "at most 64 tokens, the model's context; found 65");
  EXPECT_REFUSED(Engine(decoder, {.sequences = 0}), "expected at least 1 sequence");
  EXPECT_REFUSED(Engine(decoder, {.step_tokens = 100}), "expected a multiple of 128");
  EXPECT_TRUE(engine.is_idle());
}

}  // namespace
}  // namespace prism
