// The tokens of a conversation, and marks that say which of them are the assistant's.
//
//   const EncodedText encoded = encode_chat(render_conversation(conversation, chat_template), tokenizer);
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "prism/data/chat/conversation.h"
#include "prism/data/tokenize.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// Where each token lies in `text`, in bytes. What tokenizers change is followed: a space put before a part of the text
/// belongs to no byte of it, and white space that a token swallows belongs to no token.
/// @param ids  the tokens of `text`.
/// @return     std::nullopt if the tokens spell another text, e.g. if the tokenizer normalizes it.
std::optional<std::vector<ByteRange>> token_ranges(std::string_view text, std::span<const int32_t> ids,
                                                   const Tokenizer& tokenizer);

/// The tokens of the text, in which special tokens are parsed, with their marks (token_marks.h). The first token opens
/// the document. A token is the assistant's if one of its bytes is, as transformers' return_assistant_tokens_mask says:
/// " Hello" is the assistant's, though its space may be the question's last byte.
/// @throws InputError for a tokenizer that changes the text in other ways than those of token_ranges() and NFC, and for
///         a text without tokens of the assistant.
EncodedText encode_chat(const RenderedChat& chat, const Tokenizer& tokenizer);

}  // namespace prism
