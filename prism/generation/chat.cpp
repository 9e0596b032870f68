#include "prism/generation/chat.h"

#include <algorithm>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/counted.h"

namespace prism {
namespace {

Json message_of_role(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

}  // namespace

Chat::Chat(Decoder decoder, const Tokenizer& tokenizer, ChatTemplate chat_template, const EngineOptions& engine)
    : decoder_(std::move(decoder)),
      session_(decoder_, tokenizer, engine),
      tokenizer_(tokenizer),
      template_(std::move(chat_template)) {}

void Chat::reset(const std::string& system) {
  system_ = system;
  messages_ = Json::array();
  has_turns_ = false;
  if (!system.empty()) messages_.push_back(message_of_role("system", system));
}

std::string Chat::prompt(const std::string& message) const {
  Json messages = messages_;
  messages.push_back(message_of_role("user", message));
  return template_.render(messages, nullptr, /*add_generation_prompt=*/true);
}

GenerateOptions Chat::options_for(int64_t prompt_tokens, const GenerateOptions& options) const {
  const bool moves = decoder_->config().learned_positions;
  const bool slides = moves || options.slide, may_cut = moves || options.truncate_prompt;
  const int64_t most = context() - (slides ? 0 : std::max<int64_t>(1, options.max_new_tokens));
  PRISM_CHECK(
      !has_turns_ || may_cut || prompt_tokens <= most, "chat",
      "expected a conversation of at most {} in the model's context of {}{}; found {}; shorten the message, give "
      "--truncate-prompt, or /reset.",
      counted(most, "token"), counted(context(), "token"), slides ? "" : ", with room for the answer",
      counted(prompt_tokens, "token"));
  GenerateOptions own = options;
  if (own.max_new_tokens > 0) return own;
  // A prompt that is cut leaves room for an answer of the usual length.
  const int64_t least = may_cut ? std::min(kDefaultNewTokens, context() / 2) : 0;
  own.max_new_tokens = slides ? context() : std::max(context() - prompt_tokens, least);
  return own;
}

std::vector<int32_t> Chat::prompt_ids(const std::string& message, const std::string& bos) const {
  // The template writes the token that opens texts, if the model wants one.
  return encode_prompt(tokenizer_, prompt(message), bos == "auto" ? "off" : bos);
}

Generation Chat::answer(const std::string& message, const GenerateOptions& options,
                        const std::function<void(std::string_view)>& on_text) {
  auto ids = prompt_ids(message, options.bos);
  const auto own = options_for(std::ssize(ids), options);
  auto result = session_.generate(std::move(ids), own, on_text);
  messages_.push_back(message_of_role("user", message));
  messages_.push_back(message_of_role("assistant", result.text));
  has_turns_ = true;
  return result;
}

}  // namespace prism
