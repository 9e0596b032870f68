#include "prism/evaluation/text_windows.h"

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/tokenizer/word_opening.h"

namespace prism {
namespace {

/// Drops the tokens beyond `most`. Returns true if that many are there.
bool reached(TokenizedText& text, int64_t most) {
  if (most == 0 || std::ssize(text.tokens) < most) return false;
  text.lengths.back() -= std::ssize(text.tokens) - most;
  text.tokens.resize(static_cast<size_t>(most));
  return true;
}

}  // namespace

TextWindowOptions complete_windows(TextWindowOptions options, int64_t context, bool has_budgets,
                                   const char* operation) {
  if (options.window == 0) options.window = context;
  PRISM_CHECK(options.window >= 1 && options.window <= context, operation,
              "expected a window of 1 to {} tokens, the model's context; found {}; change it.", context,
              options.window);
  PRISM_CHECK(options.documents >= 0, operation, "expected at least 1 document, or 0 for all; found {}; change it.",
              options.documents);
  if (options.stride == 0) options.stride = has_budgets ? std::max<int64_t>(1, options.window / 2) : options.window;
  PRISM_CHECK(options.stride >= 1 && options.stride <= options.window, operation,
              "expected a stride of 1 to {} tokens, the window; found {}; change it.", options.window, options.stride);
  return options;
}

void read_documents(TextSource& source, int64_t documents, const char* operation,
                    const std::function<bool(const Document&)>& read) {
  int64_t begun = 0;
  while (const auto piece = source.next()) {
    check_not_stopped(operation);
    if (piece->first && documents > 0 && begun == documents) break;
    if (piece->first) ++begun;
    if (!read(*piece)) break;
  }
  PRISM_CHECK(begun > 0, operation, "expected text; found none (empty documents: {}); name a file with text in it.",
              source.empty_documents());
}

void append_piece(std::vector<int32_t>& tokens, const Tokenizer& tokenizer, std::string_view piece, bool is_first) {
  const auto opening = tokenizer.special_ids().opening;
  if (is_first && opening) tokens.push_back(*opening);
  const auto ids = tokenizer.encode(piece, SpecialTokens::as_text);
  tokens.insert(tokens.end(), ids.begin(), ids.end());
}

TokenizedText tokenize_text(TextSource& source, const Tokenizer& tokenizer, const TextLimits& limits,
                            const char* operation) {
  TokenizedText text;
  read_documents(source, limits.documents, operation, [&](const Document& piece) {
    const auto before = std::ssize(text.tokens);
    append_piece(text.tokens, tokenizer, piece.text, piece.first);
    if (piece.first) text.lengths.push_back(0);
    text.lengths.back() += std::ssize(text.tokens) - before;
    return !reached(text, limits.tokens);
  });
  return text;
}

std::vector<TextWindow> cut_text(const TokenizedText& text, int64_t size, int64_t stride, const char* operation) {
  std::vector<TextWindow> windows;
  int64_t begin = 0;
  for (size_t i = 0; i < text.lengths.size(); ++i) {
    for (const auto& window : cut_windows(begin, text.lengths[i], size, stride)) windows.push_back({window, begin});
    begin += text.lengths[i];
  }
  PRISM_CHECK(
      !windows.empty(), operation,
      "expected a document of at least 2 tokens, the first of which is not predicted; found none; name more text.");
  std::stable_sort(windows.begin(), windows.end(),
                   [](const TextWindow& a, const TextWindow& b) { return a.window.length > b.window.length; });
  return windows;
}

ScoreRequest score_request(std::span<const int32_t> tokens, const TextWindow& each,
                           const std::vector<uint8_t>& word_starts) {
  const auto& [window, begin] = each;
  int64_t unread = 0;
  if (!word_starts.empty()) {
    const int64_t before = window.begin - begin;
    const auto passed = tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(before));
    unread = tokens_since_start(passed, word_starts).value_or(before);
  }
  const auto first = tokens.begin() + window.begin - unread, last = tokens.begin() + window.begin + window.length + 1;
  return {.tokens = {first, last}, .scored_from = unread + window.counted_from + 1, .unread = unread};
}

}  // namespace prism
