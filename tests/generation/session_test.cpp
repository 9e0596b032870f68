// Sessions compute only what a prompt has beyond the last one, and chats go through the template.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/generation/chat.h"
#include "prism/generation/generate.h"
#include "tests/core/message_of.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

GenerateOptions likeliest(int64_t tokens) {
  GenerateOptions options;
  options.max_new_tokens = tokens;
  options.ignore_end_of_text = true;
  options.sampler = {.temperature = 0, .top_k = 0, .top_p = 1, .seed = 1};
  return options;
}

/// The same prompt in a session and alone.
Generation expect_as_alone(Session& session, const Decoder& decoder, const std::string& prompt, int64_t tokens) {
  const auto tokenizer = tiny_tokenizer();
  const auto ids = tokenizer.encode(prompt);
  auto result = session.generate(ids, likeliest(tokens));
  const auto alone = generate(decoder, tokenizer, prompt, likeliest(tokens));
  EXPECT_EQ(result.ids, alone.ids) << prompt;
  EXPECT_EQ(result.prompt_tokens_read() + result.reused, static_cast<int64_t>(ids.size()));
  return result;
}

TEST(Session, ComputesOnlyWhatIsNew) {
  const auto decoder = tiny_decoder(256);
  const auto tokenizer = tiny_tokenizer();
  Session session(decoder, tokenizer);
  const auto first = expect_as_alone(session, decoder, "Once upon", 6);
  EXPECT_EQ(first.reused, 0);
  // The continuation is cached but for its last token, which was never read. The cache grows.
  EXPECT_GE(expect_as_alone(session, decoder, "Once upon a river", 6).reused, 9);
  EXPECT_EQ(expect_as_alone(session, decoder, "Once upon a lake", 6).reused, 12);
  EXPECT_EQ(expect_as_alone(session, decoder, "Once", 6).reused, 3) << "the last token of a prompt gives the logits";
  EXPECT_EQ(expect_as_alone(session, decoder, "Twice", 6).reused, 0);
  const auto again = expect_as_alone(session, decoder, "Twice", 6);
  EXPECT_EQ(again.reused, 4);
  auto ids = again.prompt_ids;
  ids.insert(ids.end(), again.ids.begin(), again.ids.end());
  const auto more = session.generate(ids, likeliest(2));
  EXPECT_EQ(more.reused, 10) << "5 tokens of the prompt and 5 of the 6 new ones";
}

TEST(Session, GoesOnAfterTheContextHasSlid) {
  const auto decoder = tiny_decoder(16);
  const auto tokenizer = tiny_tokenizer();
  Session session(decoder, tokenizer);
  auto options = likeliest(30);
  options.slide = true;
  const auto ids = tokenizer.encode("abc");
  const auto first = session.generate(ids, options);
  EXPECT_GT(first.slides, 0);
  EXPECT_EQ(session.generate(ids, options).ids, first.ids);
}

TEST(Session, RefusesAPromptWithoutTokens) {
  const auto tokenizer = tiny_tokenizer();
  Session session(tiny_decoder(), tokenizer);
  EXPECT_REFUSED(session.generate({}, likeliest(2)),
                 "expected a prompt of at least one token; found none; give it the token that opens texts.");
  EXPECT_EQ(session.generate({97}, likeliest(2)).ids.size(), 2u);
}

TEST(Session, ComputesEverythingWithHeadBudgets) {
  const auto decoder = tiny_budget_decoder("fixed", 64);
  const auto tokenizer = tiny_tokenizer();
  Session session(decoder, tokenizer);
  expect_as_alone(session, decoder, "Once upon", 4);
  EXPECT_EQ(expect_as_alone(session, decoder, "Once upon a time", 4).reused, 0);
}

TEST(Session, BeginsWithWhatAnotherHasRead) {
  const auto tokenizer = tiny_tokenizer();
  const std::string prompt(300, 'x'), longer = prompt + " and then it ended";
  Prefill sparse({.selector = "spectral", .settings = {{"p", 0.5}, {"recent", 1}, {"block_size", 32}}});
  for (auto* prefill : {static_cast<Prefill*>(nullptr), &sparse}) {
    const auto decoder = tiny_decoder(700);
    Session first(decoder, tokenizer, {.prefill = prefill}), second(decoder, tokenizer, {.prefill = prefill}),
        alone(decoder, tokenizer, {.prefill = prefill});
    EXPECT_TRUE(first.cached().empty());
    first.generate(tokenizer.encode(prompt), likeliest(5));
    const auto kept = first.copy(280);
    EXPECT_EQ(kept.tokens, std::vector<int32_t>(first.cached().begin(), first.cached().begin() + 280));
    second.restore(kept);
    const auto result = second.generate(tokenizer.encode(longer), likeliest(5));
    EXPECT_EQ(result.reused, prefill == nullptr ? 280 : 256) << "with a selector, whole pages";
    EXPECT_EQ(result.ids, alone.generate(tokenizer.encode(longer), likeliest(5)).ids);
    EXPECT_EQ(second.generate(tokenizer.encode(longer + "."), likeliest(5)).reused, prefill == nullptr ? 316 : 0);
  }
}

constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}|{% endfor %}{% if add_generation_prompt %}a:{% endif %}";

TEST(Chat, PutsEveryTurnIntoTheTemplate) {
  const auto decoder = tiny_decoder(512);
  const auto tokenizer = tiny_tokenizer();
  Chat chat(decoder, tokenizer, ChatTemplate(kTemplate, Json::object()));
  EXPECT_EQ(chat.prompt("Hi"), "u:Hi|a:");
  std::string shown;
  const auto first = chat.answer("Hi", likeliest(5), [&](std::string_view text) { shown += text; });
  EXPECT_EQ(shown, first.text);
  EXPECT_EQ(first.ids, generate(decoder, tokenizer, "u:Hi|a:", likeliest(5)).ids);
  EXPECT_EQ(chat.prompt("More"), "u:Hi|a:" + first.text + "|u:More|a:");
  chat.reset("Be brief");
  EXPECT_EQ(chat.prompt("Hi"), "s:Be brief|u:Hi|a:");
  EXPECT_EQ(chat.system(), "Be brief");
  chat.reset();
  EXPECT_EQ(chat.prompt("Hi"), "u:Hi|a:");
}

TEST(Chat, DoesNotComputeEarlierTurnsAgain) {
  const auto decoder = tiny_decoder(2048);
  const auto tokenizer = tiny_tokenizer();
  Chat chat(decoder, tokenizer, ChatTemplate(kTemplate, Json::object()));
  int64_t computed = 0, read = 0;
  for (int turn = 0; turn < 12; ++turn) {
    const auto answer = chat.answer("turn " + std::to_string(turn), likeliest(3));
    computed += answer.prompt_tokens_read();
    read += static_cast<int64_t>(answer.prompt_ids.size());
  }
  EXPECT_LT(computed, read / 4);
}

TEST(Chat, IsAsBeforeAfterAMessageThatDoesNotFit) {
  const auto decoder = tiny_decoder(64);
  const auto tokenizer = tiny_tokenizer();
  Chat chat(decoder, tokenizer, ChatTemplate(kTemplate, Json::object()));
  EXPECT_REFUSED(chat.answer(std::string(100, 'x'), likeliest(5)), "expected a prompt of at most");
  EXPECT_EQ(chat.prompt("Hi"), "u:Hi|a:");
  chat.answer("Hi", likeliest(5));
}

TEST(Chat, AnswersUntilTheContextIsFull) {
  const auto decoder = tiny_decoder(256);
  const auto tokenizer = tiny_tokenizer();
  Chat chat(decoder, tokenizer, ChatTemplate(kTemplate, Json::object()));
  const auto answer = chat.answer("Hi", likeliest(0));
  EXPECT_EQ(answer.finish, FinishReason::length);
  EXPECT_EQ(std::ssize(answer.prompt_ids) + std::ssize(answer.ids), 256);
  EXPECT_GT(std::ssize(answer.ids), kDefaultNewTokens);
  const std::string before = chat.prompt("More");
  EXPECT_REFUSED(chat.answer("More", likeliest(0)), "give --truncate-prompt, or /reset.");
  EXPECT_EQ(chat.prompt("More"), before);
  auto cuts = likeliest(0);
  cuts.truncate_prompt = true;
  const auto cut = chat.answer("More", cuts);
  EXPECT_EQ(std::ssize(cut.ids), kDefaultNewTokens) << "half the context";
  EXPECT_EQ(cut.unread, std::ssize(cut.prompt_ids) - 128);
  chat.reset();
  auto slides = likeliest(0);
  slides.slide = true;
  EXPECT_EQ(std::ssize(chat.answer("Hi", slides).ids), 256);
}

TEST(Chat, RefusesAMessageAfterWhichTheAnswerDoesNotFit) {
  const auto tokenizer = tiny_tokenizer();
  Chat chat(tiny_decoder(64), tokenizer, ChatTemplate(kTemplate, Json::object()));
  EXPECT_REFUSED(chat.answer("Hi", likeliest(60)), "ask for at most 57 new tokens");
  chat.answer("Hi", likeliest(5));
  EXPECT_REFUSED(chat.answer("Hi", likeliest(60)),
                 "[chat] expected a conversation of at most 4 tokens in the model's context of 64 tokens, with room "
                 "for the answer; found ");
  chat.answer("Hi", likeliest(5));
}

TEST(Generate, OpensPromptsAsTheTokenizerSays) {
  const auto decoder = tiny_decoder();
  const auto tokenizer = tiny_tokenizer();
  auto options = likeliest(2);
  EXPECT_EQ(generate(decoder, tokenizer, "ab", options).prompt_ids, (std::vector<int32_t>{97, 98}));
  options.bos = "on";
  EXPECT_EQ(generate(decoder, tokenizer, "ab", options).prompt_ids, (std::vector<int32_t>{258, 97, 98}));
  EXPECT_EQ(generate(decoder, tokenizer, "<|endoftext|>ab", options).prompt_ids, (std::vector<int32_t>{258, 97, 98}));
  options.bos = "off";
  EXPECT_EQ(generate(decoder, tokenizer, "", options).prompt_ids, (std::vector<int32_t>{258}));
  options.bos = "maybe";
  EXPECT_REFUSED(generate(decoder, tokenizer, "ab", options), "expected auto, on or off; found maybe");
  options.bos = "on";
  EXPECT_REFUSED(generate(decoder, tiny_tokenizer(/*end_of_text=*/false), "ab", options), "no token that opens");
}

}  // namespace
}  // namespace prism
