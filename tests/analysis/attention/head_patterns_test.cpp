// Head patterns against a loop over single keys in float64, and for attention of a known shape.
#include "prism/analysis/attention/head_patterns.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/message_of.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

/// The attention weights of one query of one head.
std::vector<double> plain_weights(const AttentionInput& input, int64_t b, int64_t head, int64_t t) {
  const auto q = input.q_BTHD.to(torch::kDouble).contiguous(), k = input.kv.k_BGSD.to(torch::kDouble).contiguous();
  const auto q_BTHD = q.accessor<double, 4>(), k_BGSD = k.accessor<double, 4>();
  const int64_t group = head * k.size(1) / q.size(2);
  std::vector<double> weights;
  double total = 0;
  for (int64_t s = 0; s <= t; ++s) {
    double score = 0;
    for (int64_t d = 0; d < q.size(3); ++d) score += q_BTHD[b][t][head][d] * k_BGSD[b][group][s][d];
    total += weights.emplace_back(std::exp(score / std::sqrt(static_cast<double>(q.size(3)))));
  }
  for (double& weight : weights) weight /= total;
  return weights;
}

bool counts_as_punctuation(int64_t token) {
  return token % 3 == 0;
}

HeadPattern plain_pattern(const AttentionInput& input, int64_t head, const torch::Tensor& tokens_BT) {
  HeadPattern sums;
  const auto tokens = tokens_BT.accessor<int64_t, 2>();
  const int64_t rows = tokens_BT.size(0), length = tokens_BT.size(1), half = length / 2;
  for (int64_t b = 0; b < rows; ++b)
    for (int64_t t = 0; t < length; ++t) {
      const auto weights = plain_weights(input, b, head, t);
      const auto at = [&](int64_t s) { return weights[static_cast<size_t>(s)]; };
      if (t > 0) sums.previous += at(t - 1);
      sums.first += at(0);
      sums.self += at(t);
      for (int64_t s = 0; s <= t; ++s) {
        if (s < t && tokens[b][s] == tokens[b][t]) sums.same += at(s);
        if (counts_as_punctuation(tokens[b][s])) sums.punctuation += at(s);
      }
      if (t >= half) sums.induction += 2 * at(t - half + 1);
    }
  for (double* sum : {&sums.previous, &sums.first, &sums.self, &sums.same, &sums.punctuation, &sums.induction})
    *sum /= static_cast<double>(rows * length);
  return sums;
}

/// Forwards every input to the probes and keeps the plain figures of the same inputs.
struct PatternChecker : Probe {
  PatternChecker(const std::vector<LayerConfig>& layers, const std::vector<bool>& punctuation, torch::Tensor tokens_BT)
      : patterns(layers, punctuation), induction(layers, tokens_BT.size(1) / 2), tokens(std::move(tokens_BT)) {
    patterns.read(tokens);
  }
  void observe_attention(size_t layer, const AttentionInput& input) override {
    patterns.observe_attention(layer, input);
    induction.observe_attention(layer, input);
    for (int64_t head = 0; head < input.q_BTHD.size(2); ++head) plain.push_back(plain_pattern(input, head, tokens));
  }
  HeadPatternProbe patterns;
  InductionProbe induction;
  torch::Tensor tokens;
  std::vector<HeadPattern> plain;
};

TEST(HeadPatterns, EqualThePlainSums) {
  const torch::NoGradGuard no_gradients;
  std::vector<bool> punctuation;
  for (int64_t i = 0; i < kTinyVocab; ++i) punctuation.push_back(counts_as_punctuation(i));
  auto decoder = tiny_decoder();
  decoder->set_compute_type(torch::kFloat);
  PatternChecker checker(decoder->config().layers, punctuation, repeated_tokens(2, 10, /*vocab_size=*/7, /*seed=*/5));
  ForwardContext context;
  context.probe = &checker;
  decoder(checker.tokens, context);
  const auto heads = join_patterns(checker.patterns, &checker.induction);
  ASSERT_EQ(heads.size(), checker.plain.size());
  for (size_t i = 0; i < heads.size(); ++i) {
    const HeadPattern &a = heads[i], &b = checker.plain[i];
    EXPECT_NEAR(a.previous, b.previous, 1e-5 * b.previous) << i;
    EXPECT_NEAR(a.first, b.first, 1e-5 * b.first) << i;
    EXPECT_NEAR(a.self, b.self, 1e-5 * b.self) << i;
    EXPECT_NEAR(a.same, b.same, 1e-5 * b.same) << i;
    EXPECT_NEAR(a.punctuation, b.punctuation, 1e-5 * b.punctuation) << i;
    EXPECT_NEAR(a.induction, b.induction, 1e-5 * b.induction) << i;
    EXPECT_GT(b.same, 0) << i;
  }
  EXPECT_REFUSED(checker.patterns.read(torch::full({1, 2}, kTinyVocab)), "expected tokens below");
}

TEST(HeadPatterns, KnowAHeadThatLooksAtTheTokenBefore) {
  std::vector<LayerConfig> layers(1);
  layers[0].heads = layers[0].kv_heads = 1;
  layers[0].head_dim = 8;
  AttentionInput input;
  // Key s is the unit vector s, and query t matches key t - 1. The first query can only attend to itself.
  const auto units = torch::eye(8) * 40;
  input.kv.k_BGSD = units.view({1, 1, 8, 8}).contiguous();
  input.kv.v_BGSE = torch::zeros({1, 1, 8, 8});
  input.q_BTHD = units.roll(1, 0).view({1, 8, 1, 8}).contiguous();
  HeadPatternProbe probe(layers, std::vector<bool>(8));
  probe.read(torch::arange(8).view({1, 8}));
  probe.observe_attention(0, input);
  const auto previous = probe.means(0), first = probe.means(1), self = probe.means(2), same = probe.means(3);
  EXPECT_NEAR(previous[0][0], 7.0 / 8, 1e-6);
  EXPECT_NEAR(first[0][0], 2.0 / 8, 1e-6);
  EXPECT_NEAR(self[0][0], 1.0 / 8, 1e-6);
  EXPECT_EQ(same[0][0], 0);
}

TEST(HeadPatterns, RepeatTokensOnceAndTellPunctuation) {
  const auto tokens = repeated_tokens(3, 5, 11, 1);
  EXPECT_TRUE(torch::equal(tokens.narrow(1, 0, 5), tokens.narrow(1, 5, 5)));
  EXPECT_TRUE(torch::equal(tokens, repeated_tokens(3, 5, 11, 1)));
  EXPECT_FALSE(torch::equal(tokens, repeated_tokens(3, 5, 11, 2)));
  EXPECT_LT(tokens.max().item<int64_t>(), 11);
  for (const char* text : {".", " ,", "...", "\"", "\xE2\x80\x9C", " \xE2\x80\x94", "?!\n"})
    EXPECT_TRUE(is_punctuation(text)) << text;
  for (const char* text : {"", " ", "a", "it's", "3.5", "\xC3\xA9", "\xE2\x82\xAC", "\xE2\x80"})
    EXPECT_FALSE(is_punctuation(text)) << text;
}

TEST(HeadPatterns, FindThePunctuationOfATokenizer) {
  const auto flags = punctuation_tokens(tiny_tokenizer(), kTinyVocab + 2);
  ASSERT_EQ(flags.size(), static_cast<size_t>(kTinyVocab + 2));
  for (const char sign : {'.', ',', '"'}) EXPECT_TRUE(flags[static_cast<size_t>(sign)]) << sign;
  EXPECT_FALSE(flags['a']);
  EXPECT_FALSE(flags[' ']);
  EXPECT_FALSE(flags[kTinyVocab + 1]) << "no token of the tokenizer";
}

TEST(Induction, IsMeasuredOnRepeatedTokensThatTheContextHasRoomFor) {
  Decoder decoder = tiny_decoder(/*context=*/21);
  const torch::NoGradGuard no_gradients;
  const auto measured = measure_induction(*decoder, kTinyVocab, /*seed=*/3).means(0);
  InductionProbe expected(decoder->config().layers, 10);
  ForwardContext context;
  context.probe = &expected;
  decoder(repeated_tokens(16, 10, kTinyVocab, 3), context);
  EXPECT_EQ(measured, expected.means(0));
  EXPECT_GT(measured[0][0], 0);
  EXPECT_REFUSED(measure_induction(*tiny_decoder(/*context=*/1), kTinyVocab, 3), "context of at least 2 tokens");
}

}  // namespace
}  // namespace prism
