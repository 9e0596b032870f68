// Generation with and without a cache, where it ends, and what it refuses.
#include "prism/generation/generate.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>

#include "prism/attention/prefill.h"
#include "prism/attention/prefill_meter.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/text/utf8.h"
#include "tests/core/message_of.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

constexpr int32_t kEnd = 258;

GenerateOptions greedy(int64_t tokens) {
  GenerateOptions options;
  options.max_new_tokens = tokens;
  options.sampler = {.temperature = 0, .top_k = 0, .top_p = 1, .seed = 1};
  return options;
}

torch::Tensor row_of(const std::vector<int32_t>& ids) {
  return torch::tensor(std::vector<int64_t>(ids.begin(), ids.end())).unsqueeze(0);
}

/// Logits [V] of the token after `ids`, without a cache. @param before  the tokens before them, which are not read.
torch::Tensor plain_logits(Decoder& decoder, const std::vector<int32_t>& ids, const std::vector<int32_t>& before = {}) {
  ForwardContext context;
  context.word_opening_B = torch::full({1}, decoder->word_opening(before), torch::kLong);
  const auto hidden = decoder(row_of(ids), context);
  return decoder->head.logits(hidden).select(1, hidden.size(1) - 1).flatten();
}

/// In 3 layers, both paths sum the same products, at most 64 per value (d_model or keys), in a different order. Logits
/// here are below 20. A dropped key changes them far more, which one test shows.
constexpr double kTolerance = 64 * 0x1p-23 * 20;

TEST(Generate, ChoosesTheTokensOfWholePassesWithoutACache) {
  const torch::NoGradGuard no_gradients;
  auto decoder = tiny_decoder();
  const auto tokenizer = tiny_tokenizer();
  auto options = greedy(40);
  options.ignore_end_of_text = true;
  const auto result = generate(decoder, tokenizer, "And then the", options);

  std::vector<int32_t> ids = tokenizer.encode("And then the");
  EXPECT_EQ(result.prompt_ids, ids);
  std::vector<int32_t> expected;
  for (int i = 0; i < 40; ++i) {
    const auto logits = plain_logits(decoder, ids);
    const auto two = std::get<0>(logits.topk(2));
    // The choice must not depend on rounding.
    ASSERT_GT((two[0] - two[1]).item<double>(), kTolerance);
    ids.push_back(static_cast<int32_t>(logits.argmax().item<int64_t>()));
    expected.push_back(ids.back());
  }
  EXPECT_EQ(result.ids, expected);
  EXPECT_EQ(result.text, replace_invalid_utf8(tokenizer.decode(expected)));
  EXPECT_GT(std::set<int32_t>(expected.begin(), expected.end()).size(), 3U) << "the model repeats too few tokens";
}

TEST(Generate, ComputesTheSameLogitsStepByStepAndADroppedPositionWouldShow) {
  const torch::NoGradGuard no_gradients;
  auto decoder = tiny_decoder();
  const auto ids = tiny_tokenizer().encode("Some words that the model has never seen");
  const auto whole = decoder->head.logits(decoder(row_of(ids), ForwardContext{})).squeeze(0);
  const auto last = static_cast<int64_t>(ids.size()) - 1;

  const auto difference = [&](bool drop) {
    KvCache cache(decoder->config().layers, {.positions = 64});
    ForwardContext context;
    context.cache = &cache;
    double largest = 0;
    for (int64_t t = 0; t <= last; ++t) {
      if (drop && t == last) cache.truncate(t - 1);
      const auto hidden = decoder(row_of({ids[static_cast<size_t>(t)]}), context);
      const auto step = (decoder->head.logits(hidden).flatten() - whole[t]).abs().max().item<double>();
      largest = std::max(largest, step);
    }
    return largest;
  };
  EXPECT_LT(whole.abs().max().item<double>(), 20.0);
  EXPECT_LT(difference(false), kTolerance);
  EXPECT_GT(difference(true), 10 * kTolerance);
}

TEST(Generate, ContinuesWithTheHeadsThatThePromptChose) {
  const torch::NoGradGuard no_gradients;
  auto decoder = tiny_budget_decoder("fixed", 64);
  auto options = greedy(12);
  options.ignore_end_of_text = true;
  const std::string prompt = "And then the thing";
  const auto result = generate(decoder, tiny_tokenizer(), prompt, options);
  // Each token from a pass over everything before it, with budgets from the prompt alone.
  auto ids = result.prompt_ids;
  ForwardContext context;
  context.prompts_B = torch::tensor({static_cast<int32_t>(ids.size())}, torch::kInt);
  for (const int32_t found : result.ids) {
    const auto hidden = decoder(row_of(ids), context);
    const auto logits = decoder->head.logits(hidden).select(1, hidden.size(1) - 1).flatten();
    EXPECT_EQ(logits.argmax().item<int64_t>(), found);
    ids.push_back(found);
  }
  const auto with = [&](const std::string& selector, int64_t chunk) {
    Prefill prefill({.selector = selector, .settings = Json::object(), .chunk = chunk});
    return generate(decoder, tiny_tokenizer(), prompt, options, {}, {.prefill = &prefill}).ids;
  };
  EXPECT_EQ(with("dense", 0), result.ids) << "as prism generate calls it";
  EXPECT_REFUSED(with("dense", 4), "expected prompts in one piece");
  EXPECT_REFUSED(with("spectral", 0), "found the selector spectral");
}

TEST(Generate, ReadsThePromptInChunksAndThroughASelector) {
  auto decoder = tiny_decoder();
  auto options = greedy(10);
  options.ignore_end_of_text = true;
  const std::string prompt = "And then the thing that nobody had thought of";
  const auto plain = generate(decoder, tiny_tokenizer(), prompt, options);
  PrefillMeter meter;
  Prefill prefill({.selector = "spectral", .settings = {{"p", 1}, {"block_size", 32}}, .chunk = 16}, {}, &meter);
  const auto found = generate(decoder, tiny_tokenizer(), prompt, options, {}, {.prefill = &prefill});
  EXPECT_EQ(found.ids, plain.ids);
  ASSERT_EQ(meter.layers().size(), 3U);
  EXPECT_EQ(all_layers(meter.layers()).all_heads().density(), 1);
  // Counts the prompt's attention only, in blocks of 32 queries and 32 keys; two chunks share each row of blocks.
  EXPECT_EQ(meter.layers()[0].heads.size(), 2U);
}

TEST(Generate, WorksInBfloat16) {
  auto decoder = tiny_decoder();
  decoder->set_compute_type(torch::kBFloat16);
  auto options = greedy(5);
  options.ignore_end_of_text = true;
  EXPECT_EQ(generate(decoder, tiny_tokenizer(), "abc", options).ids.size(), 5U);
}

TEST(Generate, RepeatsATextForASeedAndChangesItForAnother) {
  auto decoder = tiny_decoder();
  GenerateOptions options;
  options.max_new_tokens = 30;
  options.ignore_end_of_text = true;
  options.sampler.temperature = 2;
  const auto text = [&](int64_t seed) {
    options.sampler.seed = seed;
    return generate(decoder, tiny_tokenizer(), "abc", options).text;
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST(Generate, EndsAtTheEndOfTextAndLeavesItOut) {
  const auto decoder = chain_decoder({{'a', 'b'}, {'b', 'c'}, {'c', kEnd}, {kEnd, 'x'}});
  const auto result = generate(decoder, tiny_tokenizer(), "a", greedy(10));
  EXPECT_EQ(result.text, "bc");
  EXPECT_EQ(result.ids, (std::vector<int32_t>{'b', 'c'}));
  EXPECT_EQ(result.finish, FinishReason::end_of_text);
}

TEST(Generate, GoesOnBehindTheEndOfTextIfAskedTo) {
  const auto decoder = chain_decoder({{'a', kEnd}, {kEnd, 'x'}});
  auto options = greedy(3);
  options.ignore_end_of_text = true;
  const auto result = generate(decoder, tiny_tokenizer(), "a", options);
  EXPECT_EQ(result.text, "<|endoftext|>xx");
  EXPECT_EQ(result.finish, FinishReason::length);
}

TEST(Generate, MakesAsManyTokensAsAskedForAndNoMore) {
  const auto decoder = chain_decoder({{'a', 'b'}, {'b', 'a'}});
  for (const int64_t tokens : {1, 2, 7}) {
    const auto result = generate(decoder, tiny_tokenizer(), "a", greedy(tokens));
    EXPECT_EQ(static_cast<int64_t>(result.ids.size()), tokens);
    EXPECT_EQ(result.decode_steps, tokens - 1);
    EXPECT_EQ(result.text, std::string("bababab").substr(0, static_cast<size_t>(tokens)));
    EXPECT_EQ(result.finish, FinishReason::length);
  }
}

TEST(Generate, StartsADocumentForAnEmptyPrompt) {
  const auto decoder = chain_decoder({{kEnd, 'h'}, {'h', 'i'}, {'i', kEnd}});
  const auto result = generate(decoder, tiny_tokenizer(), "", greedy(9));
  EXPECT_EQ(result.prompt_ids, (std::vector<int32_t>{kEnd}));
  EXPECT_EQ(result.text, "hi");
  EXPECT_THROW(generate(decoder, tiny_tokenizer(/*end_of_text=*/false), "", greedy(9)), InputError);
}

TEST(Generate, HandsOutWholeCharactersAndStopsBeforeAStopString) {
  // a é b | c; é takes two tokens.
  const auto decoder = chain_decoder({{'a', 0xC3}, {0xC3, 0xA9}, {0xA9, 'b'}, {'b', '|'}, {'|', 'c'}});
  auto options = greedy(5);
  options.stop = {"|c"};
  std::vector<std::string> parts;
  const auto show = [&](std::string_view text) { parts.emplace_back(text); };
  const auto result = generate(decoder, tiny_tokenizer(), "a", options, show);
  EXPECT_EQ(parts, (std::vector<std::string>{"é", "b"}));
  EXPECT_EQ(result.text, "éb");
  EXPECT_EQ(result.finish, FinishReason::stop_string);
  EXPECT_EQ(result.ids.size(), 5U);
}

TEST(Generate, ReplacesACharacterThatIsCutAtTheEnd) {
  const auto decoder = chain_decoder({{'a', 0xC3}});
  std::string shown;
  const auto result =
      generate(decoder, tiny_tokenizer(), "a", greedy(1), [&](std::string_view text) { shown += text; });
  EXPECT_EQ(result.text, "\uFFFD");
  EXPECT_EQ(shown, result.text);
}

TEST(Generate, NeverChoosesARowBeyondTheTokenizersIds) {
  // 259 logits; the tokenizer without <|endoftext|> knows 258 ids, and the model prefers the 259th.
  const auto decoder = chain_decoder({{'a', kEnd}});
  const auto result = generate(decoder, tiny_tokenizer(/*end_of_text=*/false), "a", greedy(1));
  ASSERT_EQ(result.ids.size(), 1U);
  EXPECT_EQ(result.ids[0], 0);  // all others are equal
}

TEST(Generate, FillsTheContextToItsLastToken) {
  const auto decoder = chain_decoder({{'a', 'b'}, {'b', 'a'}}, /*context=*/8);
  EXPECT_EQ(generate(decoder, tiny_tokenizer(), "aba", greedy(5)).text, "babab");
  // The default is what the context has room for.
  EXPECT_EQ(generate(decoder, tiny_tokenizer(), "aba", greedy(0)).ids.size(), 5U);
}

std::string refusal(const Decoder& decoder, std::string_view prompt, const GenerateOptions& options) {
  return message_of([&] { generate(decoder, tiny_tokenizer(), prompt, options); });
}

ModelConfig config_of_six_tokens() {
  ModelConfig config;
  config.vocab_size = kTinyVocab;
  config.d_model = 48;
  config.context = 6;
  config.schedule = "2x2";
  config.ffn_width = 40;
  config.init_std = 0.3;
  return config;
}

TEST(Generate, SlidesAContextOfLearnedPositions) {
  ModelConfig config = config_of_six_tokens();
  config.learned_positions = true;
  config.each.rotary.kind = "none";
  auto decoder = make_decoder(config);
  const torch::NoGradGuard no_gradients;
  for (const std::string prompt : {"abc", "abcdef", "abcdefghijk"}) {
    auto options = greedy(12);
    options.ignore_end_of_text = true;
    const auto found = generate(decoder, tiny_tokenizer(), prompt, options);
    // By the definition, every token comes from a pass over the last six, at positions 0 to 5.
    std::vector<int32_t> seen = found.prompt_ids;
    for (const int32_t id : found.ids) {
      const auto count = std::min<size_t>(seen.size(), 6);
      const auto window_T =
          torch::tensor(std::vector<int64_t>(seen.end() - static_cast<std::ptrdiff_t>(count), seen.end()));
      const auto logits = decoder->head.logits(decoder(window_T.unsqueeze(0), ForwardContext{})).select(1, -1);
      EXPECT_EQ(id, logits.argmax().item<int64_t>());
      seen.push_back(id);
    }
    EXPECT_EQ(found.ids.size(), 12U);
  }
}

/// Generates past a full context, and compares with a pass over each window.
void expect_the_last_half_read_anew(Decoder decoder) {
  const torch::NoGradGuard no_gradients;
  for (const std::string prompt : {"abc", "abcdef", "abcdefghi"}) {
    auto options = greedy(12);
    options.ignore_end_of_text = options.slide = options.truncate_prompt = true;
    const auto found = generate(decoder, tiny_tokenizer(), prompt, options);
    ASSERT_EQ(found.ids.size(), 12U);
    std::vector<int32_t> seen = found.prompt_ids;
    std::vector<int32_t> window(seen.end() - static_cast<std::ptrdiff_t>(std::min<size_t>(seen.size(), 6)), seen.end());
    EXPECT_EQ(found.unread, static_cast<int64_t>(seen.size() - window.size()));
    int64_t slides = 0;
    for (const int32_t id : found.ids) {
      const std::vector<int32_t> before(seen.begin(), seen.end() - static_cast<std::ptrdiff_t>(window.size()));
      EXPECT_EQ(id, plain_logits(decoder, window, before).argmax().item<int64_t>());
      seen.push_back(id);
      if (window.size() < 6) {
        window.push_back(id);
        continue;
      }
      window.assign(seen.end() - 3, seen.end());
      ++slides;
    }
    EXPECT_GE(slides, found.slides) << "the last token needs no room";
    EXPECT_GT(found.slides, 1);
  }
}

TEST(Generate, ReadsTheLastHalfOfAFullContextAnewIfAskedTo) {
  expect_the_last_half_read_anew(make_decoder(config_of_six_tokens()));
}

TEST(Generate, KnowsTheWordThatTheReadHalfOpensIn) {
  auto config = config_of_six_tokens();
  config.each.rotary.word_dims = 12;
  auto decoder = make_decoder(config);
  decoder->set_word_starts(tiny_tokenizer().word_starts());
  expect_the_last_half_read_anew(decoder);
}

TEST(Generate, ReadsTheEndOfALongPromptIfAskedTo) {
  const auto decoder = chain_decoder({{'9', 'b'}, {'b', 'a'}, {'a', 'b'}}, /*context=*/8);
  auto options = greedy(1);
  options.truncate_prompt = true;
  const auto result = generate(decoder, tiny_tokenizer(), "123456789", options);
  EXPECT_EQ(result.unread, 2);
  EXPECT_EQ(result.text, "b");
  EXPECT_EQ(result.prompt_ids.size(), 9U);
  const auto unread = [&](int64_t new_tokens, const char* prompt) {
    options.max_new_tokens = new_tokens;
    const auto more = generate(decoder, tiny_tokenizer(), prompt, options);
    EXPECT_EQ(more.ids.size(),
              static_cast<size_t>(new_tokens > 0 ? new_tokens
                                                 : 8 - (std::strlen(prompt) - static_cast<size_t>(more.unread))));
    return more.unread;
  };
  EXPECT_EQ(unread(3, "123456789"), 4) << "leaves room for the new tokens";
  EXPECT_EQ(unread(3, "1234569"), 2);
  EXPECT_EQ(unread(3, "12349"), 0);
  EXPECT_EQ(unread(0, "123456789"), 5) << "half of the context by default";
  EXPECT_EQ(unread(0, "1234569"), 0) << "a prompt that fits is read whole";
  options.max_new_tokens = 8;
  EXPECT_NE(refusal(decoder, "1", options).find("ask for at most 7, or give --slide"), std::string::npos);
}

TEST(Generate, RefusesWhatTheContextCannotHoldAndNamesTheNumbers) {
  const auto decoder = chain_decoder({}, /*context=*/8);
  const auto expect = [&](std::string_view prompt, int64_t tokens, const std::vector<std::string>& parts) {
    const std::string message = refusal(decoder, prompt, greedy(tokens));
    for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  };
  expect("123456789", 1, {"context of 8 tokens", "found 9 tokens", "at most 7", "--truncate-prompt"});
  expect("12345678", 0, {"context of 8 tokens", "found 8 tokens", "at most 7"});
  expect("12345", 4, {"context of 8 tokens", "5 + 4", "at most 3 new", "--slide"});
}

TEST(Generate, RejectsBadOptionsAndPromptsThatAreNotUtf8) {
  const auto decoder = chain_decoder({});
  EXPECT_NE(refusal(decoder, "ab\xFF!", greedy(1)).find("0xFF at offset 2"), std::string::npos);
  EXPECT_NE(refusal(decoder, "a", greedy(-1)), "");
  auto options = greedy(1);
  options.stop = {""};
  EXPECT_NE(refusal(decoder, "a", options), "");
  options = greedy(1);
  options.sampler.top_p = 0;
  EXPECT_NE(refusal(decoder, "a", options), "");
}

TEST(Generate, RefusesATokenizerWithIdsThatTheModelLacks) {
  EXPECT_NE(refusal(tiny_decoder(64, /*vocab_size=*/100), "xyz", greedy(1)), "");
}

TEST(Generate, FailsWhenTheModelGivesNoNumbers) {
  auto decoder = tiny_decoder();
  {
    const torch::NoGradGuard no_gradients;
    decoder->norm.weight.tensor().fill_(std::numeric_limits<float>::quiet_NaN());
  }
  EXPECT_THROW(generate(decoder, tiny_tokenizer(), "abc", greedy(1)), FailedError);
}

TEST(Generate, KeepsWhatItHasWhenASignalComes) {
  // A process remembers the caught signal, so the test runs in its own process.
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto interrupted = [] {
    catch_stop_signals();
    const auto decoder = chain_decoder({{'a', 'b'}, {'b', 'c'}, {'c', 'd'}});
    const auto result = generate(decoder, tiny_tokenizer(), "a", greedy(20), [](std::string_view text) {
      if (text == "c") std::raise(SIGINT);
    });
    std::_Exit(result.text == "bc" && result.finish == FinishReason::interrupted ? 0 : 1);
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(0), "");
}

TEST(Generate, ReadsNoPromptAfterASignal) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto interrupted = [] {
    catch_stop_signals();
    std::raise(SIGTERM);
    Session session(chain_decoder({{'a', 'b'}, {'b', 'c'}}), tiny_tokenizer());
    const auto result = session.generate({'a'}, greedy(20));
    std::_Exit(result.ids.empty() && result.finish == FinishReason::interrupted && session.cached().empty() ? 0 : 1);
  };
  EXPECT_EXIT(interrupted(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace prism
