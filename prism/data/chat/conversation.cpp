#include "prism/data/chat/conversation.h"

#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"

namespace prism {
namespace {

bool is_assistants(const Json& message) {
  return message["role"] == "assistant";
}

/// Refuses a template that writes two texts of a conversation which should begin alike, but do not.
void check_begins(const std::string& text, const std::string& beginning, size_t message, const char* which) {
  PRISM_CHECK(
      text.starts_with(beginning), "chat",
      "message {}: expected a template that writes each answer after {}; found one that writes other text there; "
      "give --chat-template a template with {{% generation %}} blocks.",
      message, which);
}

/// The parts of the assistant's messages, from texts of the conversation's beginnings.
std::vector<ByteRange> answers(const Conversation& conversation, const ChatTemplate& chat, const std::string& text) {
  std::vector<ByteRange> ranges;
  Json beginning = Json::array();
  for (size_t i = 0; i < conversation.messages.size(); ++i) {
    const Json& message = conversation.messages[i];
    if (!is_assistants(message)) {
      beginning.push_back(message);
      continue;
    }
    PRISM_CHECK(i > 0, "chat",
                "expected a message before the assistant's first; found none; add one, or give --chat-template a "
                "template with {{% generation %}} blocks.");
    const std::string question = chat.render(beginning, conversation.tools, /*add_generation_prompt=*/true);
    beginning.push_back(message);
    const std::string answered = chat.render(beginning, conversation.tools, /*add_generation_prompt=*/false);
    check_begins(answered, question, i + 1, "the text that asks for it");
    check_begins(text, answered, i + 1, "the same text, whatever follows it");
    ranges.push_back({question.size(), answered.size()});
  }
  return ranges;
}

}  // namespace

Conversation parse_conversation(std::string_view line) {
  Json json = parse_json(line, "the line");
  PRISM_CHECK(json.is_object() || json.is_array(), "chat",
              "expected an object with \"messages\", or a list of messages; found {}; correct or remove the line.",
              json.type_name());
  if (json.is_array()) {
    check_messages(json);
    return {std::move(json), nullptr};
  }
  const auto messages = json.find("messages"), tools = json.find("tools");
  PRISM_CHECK(messages != json.end(), "chat",
              "expected a member \"messages\"; found none; name the list of messages so, or remove the line.");
  check_messages(*messages);
  return {std::move(*messages), tools == json.end() ? Json() : std::move(*tools)};
}

RenderedChat render_conversation(const Conversation& conversation, const ChatTemplate& chat) {
  RenderedChat rendered;
  if (chat.marks_generation(!conversation.tools.is_null())) {
    rendered.text = chat.render(conversation.messages, conversation.tools, false, &rendered.assistant);
  } else {
    rendered.text = chat.render(conversation.messages, conversation.tools, false);
    rendered.assistant = answers(conversation, chat, rendered.text);
  }
  std::erase_if(rendered.assistant, [](const ByteRange& range) { return range.begin == range.end; });
  PRISM_CHECK(
      !rendered.assistant.empty(), "chat",
      "expected text of the assistant to learn from; found none in what the template writes; add a message with "
      "the role \"assistant\", or remove the conversation.");
  return rendered;
}

}  // namespace prism
