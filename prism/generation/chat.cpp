#include "prism/generation/chat.h"

#include <utility>

namespace prism {
namespace {

/// Room for a usual conversation: memory is touched only where keys and values are stored.
constexpr int64_t kCacheTokens = 4096;

Json message_of_role(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

}  // namespace

Chat::Chat(Decoder decoder, const Tokenizer& tokenizer, ChatTemplate chat_template)
    : session_(std::move(decoder), tokenizer, kCacheTokens),
      tokenizer_(tokenizer),
      template_(std::move(chat_template)) {}

void Chat::reset(const std::string& system) {
  system_ = system;
  messages_ = Json::array();
  if (!system.empty()) messages_.push_back(message_of_role("system", system));
}

std::string Chat::prompt(const std::string& message) const {
  Json messages = messages_;
  messages.push_back(message_of_role("user", message));
  return template_.render(messages, nullptr, /*add_generation_prompt=*/true);
}

Generation Chat::answer(const std::string& message, const GenerateOptions& options,
                        const std::function<void(std::string_view)>& on_text, Prefill* prefill) {
  // The template writes the token that opens texts, if the model wants one.
  const std::string bos = options.bos == "auto" ? "off" : options.bos;
  auto result = session_.generate(encode_prompt(tokenizer_, prompt(message), bos), options, on_text, prefill);
  messages_.push_back(message_of_role("user", message));
  messages_.push_back(message_of_role("assistant", result.text));
  return result;
}

}  // namespace prism
