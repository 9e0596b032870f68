// The chat template of a model's tokenizer.
#pragma once

#include <string>

#include "prism/template/chat_template.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// The tokenizer's chat template, with the tokenizer's special tokens. @param source  of the tokenizer, for messages.
/// @throws InputError if it has none, and for a text that is no template.
ChatTemplate chat_template_of(const Tokenizer& tokenizer, const std::string& source);

}  // namespace prism
