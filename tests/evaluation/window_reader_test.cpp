// Hidden states of windows, however they are read.
#include "prism/evaluation/window_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

std::vector<int32_t> random_text(int64_t tokens) {
  torch::manual_seed(2);
  const auto ids = torch::randint(kTinyVocab, {tokens}, torch::kInt);
  return {ids.const_data_ptr<int32_t>(), ids.const_data_ptr<int32_t>() + tokens};
}

/// Windows of several lengths, with and without context.
const std::vector<TextWindow> kWindows = {
    {{0, 40, 0}, 0, 0}, {{20, 40, 25}, 0, 0}, {{70, 9, 8}, 1, 65}, {{80, 3, 0}, 2, 80}};

/// The same hidden states from one pass over each window, without a cache.
torch::Tensor plain_hidden(const Decoder& decoder, const std::vector<int32_t>& ids) {
  const torch::NoGradGuard no_gradients;
  std::vector<torch::Tensor> rows;
  for (const auto& [window, document, begin] : kWindows) {
    const std::vector<int64_t> read(ids.begin() + window.begin, ids.begin() + window.begin + window.length);
    ForwardContext context;
    context.word_opening_B = torch::full(
        {1}, decoder->word_opening({ids.data() + begin, static_cast<size_t>(window.begin - begin)}), torch::kLong);
    rows.push_back(decoder(torch::tensor(read).unsqueeze(0), context)[0].slice(0, window.counted_from));
  }
  return torch::cat(rows);
}

void expect_plain_hidden(const Decoder& decoder) {
  const auto ids = random_text(90);
  const auto expected = plain_hidden(decoder, ids);
  EXPECT_EQ(expected.size(0), counted_predictions(kWindows));
  Prefill in_chunks({.chunk = 7});
  for (Prefill* prefill : {static_cast<Prefill*>(nullptr), &in_chunks}) {
    WindowReader reader(decoder, {}, prefill);
    for (const auto role : {WindowReader::Role::prompt, WindowReader::Role::decoded, WindowReader::Role::prompt}) {
      int64_t steps = 0, read = 0;
      const auto found = reader.read(ids, kWindows, role, [&](int64_t tokens) { ++steps, read += tokens; });
      EXPECT_EQ(read, 92);
      EXPECT_EQ(steps, role == WindowReader::Role::decoded ? 40 : prefill == nullptr ? 1 : 6);
      // Normed features are near 1, float32; products sum them in another order. A wrong row differs by about 1.
      EXPECT_LT((found - expected).abs().max().item<double>(), 1e-4);
    }
  }
}

TEST(WindowReader, ComputesTheSameStatesInPromptsInChunksAndTokenByToken) {
  expect_plain_hidden(tiny_decoder(64));
}

TEST(WindowReader, KnowsTheWordThatAWindowOpensIn) {
  auto config = tiny_decoder(64)->config();
  for (auto& layer : config.layers) layer.rotary.word_dims = 4;
  auto decoder = make_decoder(config);
  decoder->set_word_starts(tiny_tokenizer().word_starts());
  expect_plain_hidden(decoder);
}

TEST(WindowReader, ReadsMorePromptsThanFitOneBatch) {
  auto decoder = tiny_decoder(64);
  const auto ids = random_text(128);
  const std::vector<TextWindow> windows(100, {{0, 64, 60}, 0, 0});
  WindowReader reader(decoder, {});
  std::vector<int64_t> steps;
  const auto found =
      reader.read(ids, windows, WindowReader::Role::prompt, [&](int64_t tokens) { steps.push_back(tokens); });
  EXPECT_EQ(steps, (std::vector<int64_t>{4096, 2304}));
  EXPECT_LT((found.narrow(0, 0, 4) - found.narrow(0, 396, 4)).abs().max().item<double>(), 1e-4);
}

}  // namespace
}  // namespace prism
