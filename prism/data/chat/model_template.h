// The chat template of a model, or one that the user names.
#pragma once

#include <filesystem>
#include <string>

#include "prism/template/chat_template.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// The template in `file` or, if that is empty, the tokenizer's own, with the tokenizer's special tokens.
/// @param source  of the tokenizer, for messages.
/// @throws InputError if there is none, and for a text that is no template.
ChatTemplate chat_template_of(const Tokenizer& tokenizer, const std::filesystem::path& file, const std::string& source);

}  // namespace prism
