// Conversations as a model reads them: the text that a chat template writes, and which parts are the assistant's.
//
//   const Conversation chat = parse_conversation(R"({"messages": [{"role": "user", "content": "Hi"}, ...]})");
//   const RenderedChat rendered = render_conversation(chat, chat_template);
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "prism/core/json.h"
#include "prism/template/chat_template.h"

namespace prism {

struct Conversation {
  Json messages;
  Json tools = nullptr;  ///< descriptions of functions that the assistant may call; null: none
};

/// Parses {"messages": [...]}, which may have "tools", or a list of messages alone. Other members are ignored.
/// @throws InputError for text that is not such JSON or that parse_json() refuses, such as deeply nested lists, and for
///         messages that check_messages() refuses.
Conversation parse_conversation(std::string_view line);

struct RenderedChat {
  std::string text;
  std::vector<ByteRange> assistant;  ///< the assistant's parts, in order; none is empty
};

/// The text of the whole conversation. The assistant's parts are what {% generation %} blocks write, as in
/// transformers' return_assistant_tokens_mask. If the template has no such block, the part of each message of the role
/// "assistant" is what the text that ends with it has beyond the text that ends before it and opens an answer
/// (add_generation_prompt).
/// @throws InputError for a conversation without a part of the assistant; for a template without {% generation %} whose
///         texts do not begin alike, or a conversation whose first message is the assistant's; and what the template
///         throws.
RenderedChat render_conversation(const Conversation& conversation, const ChatTemplate& chat);

}  // namespace prism
