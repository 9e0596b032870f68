#include "prism/template/chat_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/core/message_of.h"

namespace prism {
namespace {

constexpr const char* kTurns =
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";

Json message(const char* role, const char* content) {
  return {{"role", role}, {"content", content}};
}

TEST(ChatTemplate, WritesSpecialTokensAndTheOpeningOfAnAnswer) {
  const ChatTemplate chat(kTurns, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  const Json messages = Json::array({message("user", "Hi"), message("assistant", "Yes")});
  std::vector<ByteRange> generated;
  EXPECT_EQ(chat.render(messages, nullptr, false, &generated), "<s><user>Hi<assistant>Yes</s>");
  EXPECT_EQ(generated, (std::vector<ByteRange>{{22, 29}}));
  EXPECT_EQ(chat.render(Json::array({message("user", "Hi")}), nullptr, true), "<s><user>Hi<assistant>");
  EXPECT_EQ(chat.text(), kTurns);
}

TEST(ChatTemplate, LeavesNullTokensUndefinedAndSetsToolsAndDocuments) {
  const Json messages = Json::array({message("user", "a")});
  const ChatTemplate undefined("{{ bos_token is defined }}", {{"bos_token", nullptr}});
  EXPECT_EQ(undefined.render(messages, nullptr, false), "False");
  const ChatTemplate tools("{{ tools is none }} {{ documents is none }} {{ tools }}", Json::object());
  EXPECT_EQ(tools.render(messages, nullptr, false), "True True None");
  EXPECT_EQ(tools.render(messages, Json::array({1}), false), "False True [1]");
}

TEST(ChatTemplate, KnowsWhetherItMarksGeneration) {
  for (const char* text : {kTurns, "{%- generation -%}a{%- endgeneration -%}", "{%generation%}a{%endgeneration%}"})
    EXPECT_TRUE(ChatTemplate(text, Json::object()).marks_generation()) << text;
  for (const char* text : {"", "generation", "{% if add_generation_prompt %}a{% endif %}", "{% set generation = 1 %}"})
    EXPECT_FALSE(ChatTemplate(text, Json::object()).marks_generation()) << text;
}

TEST(ChatTemplate, TakesMessagesThatOnlyCallTools) {
  const ChatTemplate chat("{{ messages[0].content is defined }}", Json::object());
  Json message = {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", Json::array({1})}};
  EXPECT_EQ(chat.render(Json::array({message}), nullptr, false), "False") << "members that are null are left out";
  message["tool_calls"] = Json::array();
  EXPECT_REFUSED(chat.render(Json::array({message}), nullptr, false), "expected a \"content\"");
}

/// As transformers 5.24 writes `{{ messages[0] }}`.
TEST(ChatTemplate, LeavesOutNullMembersAndNamesReasoning) {
  const ChatTemplate chat("{{ messages[0] }}", Json::object());
  const auto rendered = [&](const Json& more) {
    Json message = {{"role", "assistant"}, {"content", "a"}};
    message.update(more);
    return chat.render(Json::array({message}), nullptr, false);
  };
  EXPECT_EQ(rendered(Json{{"tool_calls", nullptr}, {"reasoning_content", nullptr}}),
            "{'role': 'assistant', 'content': 'a'}");
  EXPECT_EQ(rendered(Json{{"parts", {{"text", nullptr}}}}),
            "{'role': 'assistant', 'content': 'a', 'parts': {'text': None}}");
  for (const char* name : {"thinking", "reasoning"})
    EXPECT_EQ(ChatTemplate("{{ messages[0].reasoning_content }} {{ messages[0].thinking }}", Json::object())
                  .render(Json::array({{{"role", "assistant"}, {"content", "a"}, {name, "b"}}}), nullptr, false),
              "b b")
        << name;
  EXPECT_EQ(rendered(Json{{"reasoning", "b"}}),
            "{'thinking': 'b', 'role': 'assistant', 'content': 'a', 'reasoning': 'b', 'reasoning_content': 'b'}");
  EXPECT_EQ(rendered(Json{{"thinking", "c"}, {"reasoning_content", "b"}}),
            "{'thinking': 'c', 'role': 'assistant', 'content': 'a', 'reasoning_content': 'b'}");
}

TEST(ChatTemplate, RendersConversationsWithToolsByTheirOwnTemplate) {
  const Json messages = Json::array({message("user", "a")});
  const ChatTemplate two("usual", Json::object(), "{% generation %}tools{% endgeneration %}");
  EXPECT_EQ(two.render(messages, nullptr, false), "usual");
  EXPECT_EQ(two.render(messages, Json::array({1}), false), "tools");
  EXPECT_EQ(two.render(messages, Json::array(), false), "tools");
  EXPECT_FALSE(two.marks_generation());
  EXPECT_TRUE(two.marks_generation(/*with_tools=*/true));
  EXPECT_FALSE(ChatTemplate("usual", Json::object()).marks_generation(/*with_tools=*/true));
}

TEST(ChatTemplate, RefusesOtherShapesInOneSentence) {
  EXPECT_REFUSED(check_messages(Json::object()), "expected a list of messages; found object");
  EXPECT_REFUSED(check_messages(Json::array()), "expected at least one message; found an empty list");
  EXPECT_REFUSED(check_messages(Json::array({"Hi"})), "message 1: expected an object with role and content");
  const Json good = message("user", "a");
  EXPECT_REFUSED(check_messages(Json::array({good, {{"content", "a"}}})),
                 "message 2: expected a text \"role\"; found none");
  EXPECT_REFUSED(check_messages(Json::array({good, {{"role", 1}, {"content", "a"}}})), "found number");
  EXPECT_REFUSED(check_messages(Json::array({{{"role", "user"}}})),
                 "message 1: expected a \"content\" that is text or a list of parts; found none");
  EXPECT_REFUSED(check_messages(Json::array({{{"role", "user"}, {"content", 1}}})), "found number");
  EXPECT_REFUSED(ChatTemplate("a", Json::array()), "expected an object of special tokens");
  EXPECT_REFUSED(ChatTemplate("a", Json{{"bos_token", 1}}), "bos_token: expected the text of a special token");
  EXPECT_REFUSED(ChatTemplate("{% if %}", Json::object()), "line 1");
  EXPECT_REFUSED(ChatTemplate("a", Json::object()).render(Json::array({good}), "none", false),
                 "expected a list of tools; found string");
}

}  // namespace
}  // namespace prism
