// Chat templates of language models, with the special tokens that they write.
//
//   const ChatTemplate chat(text, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
//   std::string prompt = chat.render(messages, /*tools=*/nullptr, /*add_generation_prompt=*/true);
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/core/json.h"
#include "prism/template/template.h"

namespace prism {

/// A chat template as transformers' apply_chat_template() renders it. Copies are cheap, and may render at the same time
/// in different threads.
class ChatTemplate {
 public:
  /// @param text            the template.
  /// @param special_tokens  an object of texts by name, such as bos_token and eos_token; variables of the template.
  ///                        Names whose value is null are left undefined.
  /// @param tool_text       the template of conversations with tools, if it is another: tool_use in transformers.
  /// @throws InputError for a text that is no template, and for special tokens that are no object of texts.
  ChatTemplate(std::string text, const Json& special_tokens, std::optional<std::string> tool_text = std::nullopt);

  /// The text of a conversation.
  /// @param messages               as check_messages() takes them. The template does not get members that are null.
  ///                               It gets reasoning_content, thinking or reasoning under the first two names.
  /// @param tools                  descriptions of functions that the model may call, a list; null: none.
  /// @param add_generation_prompt  ends the text with what opens an answer of the model.
  /// @param generated              receives the byte ranges that {% generation %} blocks wrote, in order, unless null.
  /// @throws InputError for messages and tools of another shape, and as Template::render().
  std::string render(const Json& messages, const Json& tools, bool add_generation_prompt,
                     std::vector<ByteRange>* generated = nullptr) const;

  const std::string& text() const { return *usual_.text; }
  /// Returns true if the template marks what the model writes with {% generation %} blocks.
  /// @param with_tools  asks for the template of conversations with tools.
  bool marks_generation(bool with_tools = false) const { return source(with_tools).marks_generation; }

 private:
  struct Source {
    explicit Source(std::string its_text);

    std::shared_ptr<const std::string> text;
    Template parsed;
    bool marks_generation;
  };
  const Source& source(bool with_tools) const { return with_tools && with_tools_ ? *with_tools_ : usual_; }

  std::shared_ptr<const Json> special_tokens_;
  Source usual_;
  std::optional<Source> with_tools_;
};

/// Checks that `messages` are a conversation: a list of at least one object, each with a text "role" and a "content".
/// The content is a text or a list of parts; a message with "tool_calls" may have none, or null.
/// @throws InputError naming the first message that is not of this shape, counted from 1.
void check_messages(const Json& messages);

}  // namespace prism
