#include "prism/cli/options/chat_flags.h"

#include "prism/core/files.h"
#include "prism/data/chat/model_template.h"

namespace prism {

void add_chat_flags(CLI::App& app, ChatFlags& flags, CLI::Option* chat) {
  auto* system = app.add_option("--system", flags.system, "message that tells the model how to answer");
  if (chat != nullptr) system->needs(chat);
  add_template_flag(app, flags.chat_template, chat);
}

void add_template_flag(CLI::App& app, std::string& file, CLI::Option* chat) {
  auto* option =
      app.add_option("--chat-template", file, "file with the chat template (Jinja); default: the tokenizer's");
  option->type_name("FILE");
  if (chat != nullptr) option->needs(chat);
}

void use_template(const std::string& file, Tokenizer& tokenizer) {
  if (!file.empty()) tokenizer.set_chat_template(read_file(file));
}

Chat open_chat(const ChatFlags& flags, ModelFolder& model, const std::string& name, const EngineOptions& engine) {
  use_template(flags.chat_template, *model.tokenizer);
  Chat chat(model.decoder, *model.tokenizer, chat_template_of(*model.tokenizer, name), engine);
  chat.reset(flags.system);
  return chat;
}

}  // namespace prism
