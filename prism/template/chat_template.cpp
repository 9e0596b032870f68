#include "prism/template/chat_template.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

/// The special tokens that are set.
Json known_tokens(const Json& special_tokens) {
  PRISM_CHECK(special_tokens.is_object(), "chat",
              "expected an object of special tokens, such as bos_token; found {}; name each of them.",
              special_tokens.type_name());
  Json known = Json::object();
  for (const auto& [name, value] : special_tokens.items()) {
    if (value.is_null()) continue;
    PRISM_CHECK(value.is_string(), "chat", "{}: expected the text of a special token; found {}; correct it.", name,
                value.type_name());
    known[name] = value;
  }
  return known;
}

/// Source: transformers, utils/chat_template_utils.py, which searches the text for the same tag.
/// Searches the text, not the syntax tree, so that both decide alike: transformers also finds tags in comments.
bool has_generation_tag(std::string_view text) {
  const auto skip = [&](size_t place, std::string_view any) {
    const size_t end = text.find_first_not_of(any, place);
    return end == std::string_view::npos ? text.size() : end;
  };
  constexpr std::string_view kName = "generation";
  for (size_t tag = text.find("{%"); tag != std::string_view::npos; tag = text.find("{%", tag + 2)) {
    size_t place = skip(skip(tag + 2, "-+"), " \t\r\n");
    if (!text.substr(place).starts_with(kName)) continue;
    place = skip(place + kName.size(), " \t\r\n");
    if (text.substr(skip(place, "-+")).starts_with("%}")) return true;
  }
  return false;
}

/// The messages as a template gets them: without members that are null, and with the reasoning as reasoning_content and
/// thinking, whichever of its names it has. Source: transformers, utils/chat_template_utils.py
/// (_normalize_chat_messages, _alias_reasoning_fields).
Json messages_for_template(const Json& messages) {
  Json result = Json::array();
  for (const Json& message : messages) {
    Json known = Json::object();
    for (const auto& [name, value] : message.items())
      if (!value.is_null()) known[name] = value;
    for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
      if (!known.contains(name)) continue;
      const Json reasoning = known[name];
      Json all = {{"thinking", reasoning}};
      all.update(known);
      all["reasoning_content"] = reasoning;
      known = std::move(all);
      break;
    }
    result.push_back(std::move(known));
  }
  return result;
}

bool may_lack_content(const Json& message) {
  const auto calls = message.find("tool_calls");
  return calls != message.end() && calls->is_array() && !calls->empty();
}

}  // namespace

ChatTemplate::Source::Source(std::string its_text)
    : text(std::make_shared<const std::string>(std::move(its_text))),
      parsed(Template::parse(*text)),
      marks_generation(has_generation_tag(*text)) {}

ChatTemplate::ChatTemplate(std::string text, const Json& special_tokens, std::optional<std::string> tool_text)
    : special_tokens_(std::make_shared<const Json>(known_tokens(special_tokens))), usual_(std::move(text)) {
  if (tool_text) with_tools_.emplace(std::move(*tool_text));
}

std::string ChatTemplate::render(const Json& messages, const Json& tools, bool add_generation_prompt,
                                 std::vector<ByteRange>* generated) const {
  check_messages(messages);
  PRISM_CHECK(tools.is_null() || tools.is_array(), "chat",
              "expected a list of tools; found {}; put them in a list, or leave them out.", tools.type_name());
  Json values = *special_tokens_;
  values["messages"] = messages_for_template(messages);
  values["tools"] = tools;
  values["documents"] = nullptr;
  values["add_generation_prompt"] = add_generation_prompt;
  RenderOptions options;
  options.generated = generated;
  return source(!tools.is_null()).parsed.render(values, options);
}

void check_messages(const Json& messages) {
  PRISM_CHECK(messages.is_array(), "chat",
              "expected a list of messages; found {}; write [{{\"role\": ..., ...}}, ...].", messages.type_name());
  PRISM_CHECK(!messages.empty(), "chat", "expected at least one message; found an empty list; add one or remove it.");
  int number = 0;
  for (const Json& message : messages) {
    ++number;
    PRISM_CHECK(message.is_object(), "chat",
                "message {}: expected an object with role and content; found {}; correct or remove it.", number,
                message.type_name());
    const auto role = message.find("role"), content = message.find("content");
    PRISM_CHECK(role != message.end() && role->is_string(), "chat",
                "message {}: expected a text \"role\"; found {}; add one, such as user or assistant.", number,
                role == message.end() ? "none" : role->type_name());
    const bool lacks_content = content == message.end() || content->is_null();
    if (lacks_content && may_lack_content(message)) continue;
    PRISM_CHECK(!lacks_content && (content->is_string() || content->is_array()), "chat",
                "message {}: expected a \"content\" that is text or a list of parts; found {}; add it.", number,
                content == message.end() ? "none" : content->type_name());
  }
}

}  // namespace prism
