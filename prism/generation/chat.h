// A conversation with a model: each turn goes through the chat template, and earlier turns are not computed again.
//
//   Chat chat(model.decoder, *model.tokenizer, chat_template_of(*model.tokenizer, "models/chat"));
//   Generation answer = chat.answer("Who wrote Emma?", options, [](std::string_view text) { std::cout << text; });
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "prism/generation/generate.h"
#include "prism/template/chat_template.h"

namespace prism {

class Chat {
 public:
  /// @param tokenizer  must outlive the chat.
  Chat(Decoder decoder, const Tokenizer& tokenizer, ChatTemplate chat_template, const EngineOptions& engine = {});

  /// Forgets all turns. @param system  the message that tells the model how to answer; empty: none.
  void reset(const std::string& system = "");
  const std::string& system() const { return system_; }

  /// Appends a message of the user and the model's answer to it. An answer that was cut or interrupted is kept as it
  /// is. If this throws, the conversation is as before.
  /// @param options  with max_new_tokens 0, an answer ends at the latest where the context is full, or, if the context
  ///                 slides, after as many tokens as the context has.
  /// @throws InputError as generate(): the whole conversation must fit the context.
  Generation answer(const std::string& message, const GenerateOptions& options,
                    const std::function<void(std::string_view)>& on_text = {});

  Session& session() { return session_; }
  /// Tokens of the model's context.
  int64_t context() const { return decoder_->config().context; }
  /// The text that the model reads for the next answer to `message`, and its tokens.
  std::string prompt(const std::string& message) const;
  std::vector<int32_t> prompt_ids(const std::string& message, const std::string& bos) const;

 private:
  /// The options for an answer to a prompt of this many tokens.
  GenerateOptions options_for(int64_t prompt_tokens, const GenerateOptions& options) const;

  Decoder decoder_;
  Session session_;
  const Tokenizer& tokenizer_;
  ChatTemplate template_;
  std::string system_;
  Json messages_ = Json::array();
  bool has_turns_ = false;
};

}  // namespace prism
