// Log-likelihoods of continuations, each as if it were alone, and hidden states, however they are read.
#include "prism/generation/scorer.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

/// Of log-likelihoods of up to 100 nats: products in float32 add in another order where few rows share a call.
constexpr double kSumRounding = 1e-4;

std::vector<int32_t> random_ids(int64_t tokens, uint64_t seed) {
  torch::manual_seed(seed);
  const auto ids = torch::randint(kTinyVocab, {tokens}, torch::kInt);
  return {ids.const_data_ptr<int32_t>(), ids.const_data_ptr<int32_t>() + tokens};
}

std::vector<int32_t> joined(std::vector<int32_t> a, const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Hidden states of one request from one pass over it, without a cache.
torch::Tensor plain_hidden(const Decoder& decoder, const ScoreRequest& request) {
  const torch::NoGradGuard no_gradients;
  const std::vector<int64_t> read(request.tokens.begin() + request.unread, request.tokens.end() - 1);
  ForwardContext context;
  context.word_opening_B = torch::full(
      {1}, decoder->word_opening({request.tokens.data(), static_cast<size_t>(request.unread)}), torch::kLong);
  return decoder(torch::tensor(read).unsqueeze(0), context)[0].slice(0, request.scored_from - request.unread - 1);
}

/// Contexts with something in common, at several depths, and continuations of several lengths.
std::vector<ScoreRequest> related_requests() {
  const auto shots = random_ids(150, 1), first = joined(shots, random_ids(20, 2)),
             second = joined(shots, random_ids(30, 3));
  std::vector<ScoreRequest> requests;
  for (const auto& context : {first, second, random_ids(12, 4), shots})
    for (const int64_t length : {1, 5, 9})
      requests.push_back({.tokens = joined(context, random_ids(length, static_cast<uint64_t>(length))),
                          .scored_from = std::ssize(context)});
  requests.push_back({.tokens = random_ids(7, 5), .scored_from = 7});
  requests.push_back(requests[4]);
  return requests;
}

TEST(Scorer, GivesEachLogLikelihoodAsIfItWereAlone) {
  const auto decoder = tiny_decoder(400);
  auto requests = related_requests();
  // A continuation of the likeliest tokens.
  for (int i = 0; i < 3; ++i) {
    requests.push_back(requests.back());
    auto& last = requests.back();
    last.tokens.push_back(0);
    const auto logits = decoder->head.logits(plain_hidden(decoder, last).slice(0, -1));
    last.tokens.back() = static_cast<int32_t>(logits.argmax(1).item<int64_t>());
    last.scored_from = std::ssize(last.tokens) - 1 - i;
  }
  Scorer scorer(decoder);
  const auto scores = scorer.score(requests);
  ASSERT_EQ(scores.size(), requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& request = requests[i];
    const std::vector<int64_t> labels(request.tokens.begin() + request.scored_from, request.tokens.end());
    EXPECT_EQ(std::ssize(labels), request.predictions());
    if (labels.empty()) {
      EXPECT_EQ(scores[i].log_likelihood, 0);
      EXPECT_TRUE(scores[i].is_greedy);
      continue;
    }
    const auto logits = decoder->head.logits(plain_hidden(decoder, request)).to(torch::kDouble);
    const auto label_N1 = torch::tensor(labels).unsqueeze(1);
    EXPECT_NEAR(scores[i].log_likelihood, logits.log_softmax(1).gather(1, label_N1).sum().item<double>(), kSumRounding)
        << i;
    EXPECT_EQ(scores[i].is_greedy, torch::equal(logits.argmax(1), label_N1.squeeze(1))) << i;
  }
  EXPECT_TRUE(scores.back().is_greedy);
  EXPECT_FALSE(scores[2].is_greedy);
}

TEST(Scorer, ComputesOnceWhatRequestsHaveInCommon) {
  Scorer scorer(tiny_decoder(400));
  const auto requests = related_requests();
  int64_t computed = 0;
  scorer.score(requests, [&](int64_t tokens) { computed += tokens; });
  // The last token of a context is computed for every continuation, and the last token of a continuation never.
  const int64_t shots = 149, contexts = 20 + 30 + 11, continuations = 4 * (1 + 5 + 9), again = 5;
  EXPECT_EQ(computed, shots + contexts + continuations + again);
  Prefill sparse({.selector = "spectral", .settings = {{"p", 0.5}, {"recent", 1}, {"block_size", 32}}});
  Scorer whole(tiny_decoder(400), {.prefill = &sparse});
  int64_t all = 0, expected = 0;
  whole.score(requests, [&](int64_t tokens) { all += tokens; });
  for (const auto& each : requests) expected += each.predictions() == 0 ? 0 : std::ssize(each.tokens) - 1;
  EXPECT_EQ(all, expected) << "a selector reads whole prompts";
}

TEST(Scorer, ScoresMoreThanIsComputedTogether) {
  const auto decoder = tiny_decoder(400);
  std::vector<ScoreRequest> requests;
  for (uint64_t i = 0; i < 120; ++i) requests.push_back({.tokens = random_ids(390, i), .scored_from = 380});
  Scorer scorer(decoder);
  const auto together = scorer.score(requests);
  for (const size_t i : {size_t{0}, size_t{77}, size_t{119}}) {
    const auto alone = scorer.score(std::span(requests).subspan(i, 1));
    EXPECT_NEAR(together[i].log_likelihood, alone[0].log_likelihood, kSumRounding);
  }
}

TEST(Scorer, ComputesManyShortContinuationsTogether) {
  // More pages than are computed together: of many short contexts, and of one context that very many continue.
  std::vector<ScoreRequest> requests;
  const auto shots = random_ids(40, 1);
  for (uint64_t i = 0; i < 300; ++i) {
    const auto context = i < 150 ? random_ids(12, 10 + i / 3) : shots;
    requests.push_back({.tokens = joined(context, random_ids(3, 1000 + i)), .scored_from = std::ssize(context)});
  }
  const auto decoder = tiny_decoder(400);
  Scorer scorer(decoder);
  int64_t steps = 0;
  const auto together = scorer.score(requests, [&](int64_t) { ++steps; });
  EXPECT_LE(steps, 12);
  for (const size_t i : {size_t{0}, size_t{149}, size_t{150}, size_t{299}}) {
    const auto alone = scorer.score(std::span(requests).subspan(i, 1));
    EXPECT_NEAR(together[i].log_likelihood, alone[0].log_likelihood, kSumRounding);
  }
}

void expect_plain_hidden(const Decoder& decoder) {
  const auto ids = random_ids(90, 2);
  const auto part = [&](int64_t begin, int64_t end) { return std::vector(ids.begin() + begin, ids.begin() + end); };
  std::vector<ScoreRequest> requests = {{.tokens = part(0, 41)},
                                        {.tokens = part(0, 61), .scored_from = 46, .unread = 20},
                                        {.tokens = part(65, 80), .scored_from = 14, .unread = 5},
                                        {.tokens = part(80, 84)}};
  std::vector<torch::Tensor> rows;
  int64_t tokens = 0;
  for (const auto& each : requests) {
    rows.push_back(plain_hidden(decoder, each));
    tokens += std::ssize(each.tokens) - 1 - each.unread;
  }
  const auto expected_ND = torch::cat(rows);
  EXPECT_EQ(expected_ND.size(0), count_predictions(requests));
  Prefill in_chunks({.chunk = 7});
  for (Prefill* prefill : {static_cast<Prefill*>(nullptr), &in_chunks}) {
    Scorer scorer(decoder, {.prefill = prefill});
    for (const bool decodes : {false, true, false}) {
      for (auto& each : requests) each.decodes = decodes;
      int64_t steps = 0, read = 0;
      const auto found_ND = scorer.hidden(requests, [&](int64_t computed) { ++steps, read += computed; });
      EXPECT_EQ(read, tokens);
      EXPECT_EQ(steps, decodes ? 40 : prefill == nullptr ? 1 : 6);
      // Normed features are near 1, float32; products sum them in another order. A wrong row differs by about 1.
      EXPECT_LT((found_ND - expected_ND).abs().max().item<double>(), 1e-4);
    }
  }
}

TEST(Scorer, ComputesTheSameStatesInPromptsInChunksAndTokenByToken) {
  expect_plain_hidden(tiny_decoder(64));
}

TEST(Scorer, KnowsTheWordThatATextContinues) {
  auto config = tiny_decoder(64)->config();
  for (auto& layer : config.layers) layer.rotary.word_dims = 4;
  auto decoder = make_decoder(config);
  decoder->set_word_starts(tiny_tokenizer().word_starts());
  expect_plain_hidden(decoder);
}

TEST(Scorer, GivesHeadBudgetsTheTokensTheyAreToRead) {
  const torch::NoGradGuard no_gradients;
  for (const char* kind : {"learned", "fixed"}) {
    const auto decoder = tiny_budget_decoder(kind, 64);
    const std::vector<ScoreRequest> requests = {{.tokens = random_ids(40, 1), .scored_from = 20, .budget_tokens = 20},
                                                {.tokens = random_ids(30, 2), .scored_from = 25, .budget_tokens = 10}};
    Scorer scorer(decoder);
    const auto found_ND = scorer.hidden(requests);
    int64_t row = 0;
    for (const auto& each : requests) {
      const std::vector<int64_t> read(each.tokens.begin(), each.tokens.end() - 1);
      ForwardContext context;
      context.prompts_B = torch::tensor({static_cast<int32_t>(each.budget_tokens)}, torch::kInt);
      const auto expected_ND = decoder(torch::tensor(read).unsqueeze(0), context)[0].slice(0, each.scored_from - 1);
      EXPECT_LT((found_ND.narrow(0, row, each.predictions()) - expected_ND).abs().max().item<double>(), 1e-4) << kind;
      row += each.predictions();
    }
  }
}

}  // namespace
}  // namespace prism
