// A conversation with a model: each turn goes through the chat template, and earlier turns are not computed again.
//
//   Chat chat(model.decoder, *model.tokenizer, chat_template_of(*model.tokenizer, "models/chat"));
//   Generation answer = chat.answer("Who wrote Emma?", options, [](std::string_view text) { std::cout << text; });
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "prism/generation/generate.h"
#include "prism/template/chat_template.h"

namespace prism {

class Chat {
 public:
  /// @param tokenizer  must outlive the chat.
  Chat(Decoder decoder, const Tokenizer& tokenizer, ChatTemplate chat_template);

  /// Forgets all turns. @param system  the message that tells the model how to answer; empty: none.
  void reset(const std::string& system = "");
  const std::string& system() const { return system_; }

  /// Appends a message of the user and the model's answer to it. An answer that was interrupted is kept as it is. If
  /// this throws, the conversation is as before.
  /// @throws InputError as generate(): the whole conversation must fit the context.
  Generation answer(const std::string& message, const GenerateOptions& options,
                    const std::function<void(std::string_view)>& on_text = {}, Prefill* prefill = nullptr);

  /// The text that the model reads for the next answer to `message`.
  std::string prompt(const std::string& message) const;

 private:
  Session session_;
  const Tokenizer& tokenizer_;
  ChatTemplate template_;
  std::string system_;
  Json messages_ = Json::array();
};

}  // namespace prism
