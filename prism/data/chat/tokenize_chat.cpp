#include "prism/data/chat/tokenize_chat.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "prism/core/error.h"
#include "prism/data/chat/encode_chat.h"

namespace prism {
namespace {

EncodedText encode_row(const Document& row, const ChatTemplate& chat, const Tokenizer& tokenizer) {
  try {
    return encode_chat(render_conversation(parse_conversation(row.text), chat), tokenizer);
  } catch (const InputError& error) {
    // The line of the file, not to be confused with that of the template.
    const bool is_templates = std::string_view(error.what()).starts_with("[template]");
    throw InputError("tokenize",
                     fmt::format("{}: {}{}", row.place, is_templates ? "the template, " : "", error.sentence()));
  }
}

}  // namespace

TokenizeSummary tokenize_chat(const std::vector<std::string>& inputs, const std::vector<std::string>& valid_inputs,
                              const Tokenizer& tokenizer, const ChatTemplate& chat, const std::filesystem::path& out,
                              TokenizeOptions options,
                              const std::function<void(const TokenizeProgress&)>& on_progress) {
  options.text.format = "auto";
  options.text.whole_rows = true;
  options.text.has_flags = false;  // --format, --field
  const auto encode = [&](const Document& row) { return encode_row(row, chat, tokenizer); };
  return tokenize_documents(inputs, valid_inputs, tokenizer, {encode, /*marks=*/true}, out, options, on_progress);
}

}  // namespace prism
