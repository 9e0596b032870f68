// --system and --chat-template, shared by the commands that put messages into a model's chat template.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "prism/checkpoint/model_folder.h"
#include "prism/generation/chat.h"

namespace prism {

/// The parsed options.
struct ChatFlags {
  std::string system, chat_template;
};

/// Adds --system and --chat-template. @param chat  the flag that they need; null: none.
void add_chat_flags(CLI::App& app, ChatFlags& flags, CLI::Option* chat = nullptr);
/// Adds --chat-template alone.
void add_template_flag(CLI::App& app, std::string& file, CLI::Option* chat = nullptr);

/// Gives the tokenizer the template of --chat-template, if it was given.
void use_template(const std::string& file, Tokenizer& tokenizer);
/// A chat that begins with --system. @param model  has a tokenizer; must outlive the chat. @param name  of the model,
/// for messages. @throws InputError if the model has no template and none was given.
Chat open_chat(const ChatFlags& flags, ModelFolder& model, const std::string& name, const EngineOptions& engine);

}  // namespace prism
