#include "prism/data/chat/conversation.h"

#include <gtest/gtest.h>

#include "tests/core/message_of.h"
#include "tests/data/chat/chat_templates.h"

namespace prism {
namespace {

RenderedChat rendered(const Json& messages, const std::string& text) {
  return render_conversation({messages}, ChatTemplate(text, Json::object()));
}

std::vector<std::string> parts(const RenderedChat& chat) {
  std::vector<std::string> texts;
  for (const ByteRange& range : chat.assistant) texts.push_back(chat.text.substr(range.begin, range.end - range.begin));
  return texts;
}

TEST(Conversation, IsAnObjectWithMessagesOrAList) {
  const Json messages = two_answers();
  EXPECT_EQ(parse_conversation(messages.dump()).messages, messages);
  EXPECT_TRUE(parse_conversation(messages.dump()).tools.is_null());
  const Json object = {{"id", 7}, {"messages", messages}, {"tools", Json::array({"f"})}};
  EXPECT_EQ(parse_conversation(object.dump()).messages, messages);
  EXPECT_EQ(parse_conversation(object.dump()).tools, Json::array({"f"}));
}

TEST(Conversation, RefusesOtherLines) {
  EXPECT_REFUSED(parse_conversation("{\"messages\": ["), "expected JSON in the line; found a text that ends too early");
  EXPECT_REFUSED(parse_conversation("Hi"), "expected JSON in the line; found a fault at byte 1");
  const std::string deep(100'000, '[');  // copying it would exhaust the stack
  EXPECT_REFUSED(parse_conversation(deep), "expected JSON in the line; found more than 100 levels of nesting");
  EXPECT_REFUSED(parse_conversation("{\"messages\": " + deep + std::string(deep.size(), ']') + "}"),
                 "found more than 100 levels of nesting; nest less");
  EXPECT_REFUSED(parse_conversation("{\"messages\": [], \"messages\": []}"), "\"messages\" twice");
  EXPECT_REFUSED(parse_conversation("\"Hi\""), "or a list of messages; found string");
  EXPECT_REFUSED(parse_conversation("{\"text\": \"Hi\"}"), "expected a member \"messages\"; found none");
  EXPECT_REFUSED(parse_conversation("[]"), "expected at least one message");
  EXPECT_REFUSED(parse_conversation("{\"messages\": []}"), "expected at least one message");
  EXPECT_REFUSED(parse_conversation("[{\"role\": \"user\"}]"), "message 1: expected a \"content\"");
}

TEST(Conversation, TakesTheAssistantsPartsFromGenerationBlocks) {
  const auto chat = rendered(two_answers(), kMarkingTemplate);
  EXPECT_EQ(chat.text, "<user>Hi|<assistant>Yes|<user>Why|<assistant>No|");
  EXPECT_EQ(parts(chat), (std::vector<std::string>{"Yes|", "No|"}));
}

TEST(Conversation, TakesThemFromTextsOfItsBeginningsOtherwise) {
  const auto chat = rendered(two_answers(), kPlainTemplate);
  EXPECT_EQ(chat.text, "<user>Hi|<assistant>Yes|<user>Why|<assistant>No|");
  EXPECT_EQ(parts(chat), (std::vector<std::string>{"Yes|", "No|"}));
  // Two answers one after the other, and text after the last.
  const Json messages =
      Json::array({turn("user", "a"), turn("assistant", "b"), turn("assistant", "c"), turn("user", "")});
  EXPECT_EQ(parts(rendered(messages, kPlainTemplate)), (std::vector<std::string>{"b|", "c|"}));
}

TEST(Conversation, RefusesTemplatesWhoseTextsDoNotBeginAlike) {
  const std::string sentence = "give --chat-template a template with {% generation %} blocks";
  // Opens an answer with other text than it writes before one.
  const std::string other_opening =
      "{% for m in messages %}<{{ m.role }}>{{ m.content }}|{% endfor %}{% if add_generation_prompt %}?{% endif %}";
  EXPECT_REFUSED(rendered(two_answers(), other_opening),
                 "message 2: expected a template that writes each answer after");
  EXPECT_REFUSED(rendered(two_answers(), other_opening), sentence);
  // Ends the last message with text of its own, as templates do that drop thoughts of earlier turns.
  const std::string other_end = std::string(kPlainTemplate) + "{% if not add_generation_prompt %}.{% endif %}";
  EXPECT_REFUSED(rendered(two_answers(), other_end), "the same text, whatever follows it");
  EXPECT_REFUSED(rendered(Json::array({turn("assistant", "a")}), kPlainTemplate),
                 "expected a message before the assistant's first; found none");
  EXPECT_EQ(parts(rendered(Json::array({turn("assistant", "a")}), kMarkingTemplate)), std::vector<std::string>{"a|"});
}

TEST(Conversation, RefusesOneWithoutAnAnswer) {
  const Json question = Json::array({turn("user", "Hi")});
  for (const char* text : {kMarkingTemplate, kPlainTemplate})
    EXPECT_REFUSED(rendered(question, text), "expected text of the assistant to learn from; found none");
}

}  // namespace
}  // namespace prism
