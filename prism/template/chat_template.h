// Chat templates of language models, with the special tokens that they write.
//
//   const ChatTemplate chat(text, {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
//   std::string prompt = chat.render(messages, /*tools=*/nullptr, /*add_generation_prompt=*/true);
#pragma once

#include <memory>
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
  /// @throws InputError for a text that is no template, and for special tokens that are no object of texts.
  ChatTemplate(std::string text, const Json& special_tokens);

  /// The text of a conversation.
  /// @param messages               as check_messages() takes them. The template does not get members that are null.
  ///                               It gets reasoning_content, thinking or reasoning under the first two names.
  /// @param tools                  descriptions of functions that the model may call, a list; null: none.
  /// @param add_generation_prompt  ends the text with what opens an answer of the model.
  /// @param generated              receives the byte ranges that {% generation %} blocks wrote, in order, unless null.
  /// @throws InputError for messages and tools of another shape, and as Template::render().
  std::string render(const Json& messages, const Json& tools, bool add_generation_prompt,
                     std::vector<ByteRange>* generated = nullptr) const;

  const std::string& text() const { return *text_; }
  /// Returns true if the template marks what the model writes with {% generation %} blocks.
  bool marks_generation() const { return marks_generation_; }

 private:
  std::shared_ptr<const std::string> text_;
  std::shared_ptr<const Json> special_tokens_;
  Template template_;
  bool marks_generation_;
};

/// Checks that `messages` are a conversation: a list of at least one object, each with a text "role" and a "content".
/// The content is a text or a list of parts; a message with "tool_calls" may have none, or null.
/// @throws InputError naming the first message that is not of this shape, counted from 1.
void check_messages(const Json& messages);

}  // namespace prism
