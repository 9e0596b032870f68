// Converts conversations to a folder of token shards with marks. This is what `prism tokenize --chat` does.
//
//   const auto tokenizer = Tokenizer::load("models/chat");
//   const ChatTemplate chat = chat_template_of(tokenizer, "models/chat");
//   TokenizeSummary summary = tokenize_chat({"train.jsonl"}, {}, tokenizer, chat, "data/chat", options);
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "prism/data/tokenize.h"
#include "prism/template/chat_template.h"

namespace prism {

/// tokenize() for files with a conversation on each line (conversation.h). Each is one document, begins with the first
/// token that the template writes, and goes to training or validation as a whole. Special tokens spelled in a message
/// are parsed, as in transformers. The shards have marks, so training learns the assistant's tokens alone.
///
/// @param options  text.format, field and separator are ignored; files given by name and standard input hold rows, and
///                 folders are searched for .jsonl.
/// @throws InputError also for a line that is no conversation, or one that the template or encode_chat() refuses, with
///         its file and line.
TokenizeSummary tokenize_chat(const std::vector<std::string>& inputs, const std::vector<std::string>& valid_inputs,
                              const Tokenizer& tokenizer, const ChatTemplate& chat, const std::filesystem::path& out,
                              TokenizeOptions options,
                              const std::function<void(const TokenizeProgress&)>& on_progress = {});

}  // namespace prism
