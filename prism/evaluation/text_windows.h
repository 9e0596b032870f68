// A text as tokens, and the windows in which a model reads them.
//
//   const TokenizedText text = tokenize_text(source, tokenizer, {.documents = 10}, "divergence");
//   for (const auto& [window, begin] : cut_text(text, 1024, 512, "divergence")) ...
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "prism/data/text_source.h"
#include "prism/evaluation/windows.h"
#include "prism/generation/scorer.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct TextWindowOptions {
  int64_t window = 0, stride = 0, documents = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("window", window, "tokens per window, read at once; 0: the model's context");
    v("stride", stride,
      "tokens from the start of one window to the start of the next; 0: as long as the window, so that windows do not "
      "overlap; for a model with head budgets half as long, because it decides its budgets on the first half");
    v("documents", documents, "score only the first N documents; 0: all");
  }
};

/// The options with their defaults filled in. @param context  of the model, in tokens.
/// @throws InputError for a window beyond the context, a stride outside 1 to window, or a negative number of documents.
TextWindowOptions complete_windows(TextWindowOptions options, int64_t context, bool has_budgets, const char* operation);

struct TokenizedText {
  std::vector<int32_t> tokens;   ///< of all documents, concatenated
  std::vector<int64_t> lengths;  ///< tokens of each document, including its opening token
};

/// How much of a text is read; 0: all.
struct TextLimits {
  int64_t documents = 0;
  int64_t tokens = 0;  ///< at most
};

/// Reads the first documents of a source piece by piece, until `read` returns false. @param documents  0: all.
/// @throws InputError as TextSource, and for a source without text; FailedError at SIGINT or SIGTERM (core/stop.h).
void read_documents(TextSource& source, int64_t documents, const char* operation,
                    const std::function<bool(const Document&)>& read);

/// Appends the tokens of a document, or of a piece of one. If the tokenizer has an opening token, it precedes the first
/// piece. Special tokens spelled in the text stay text.
void append_piece(std::vector<int32_t>& tokens, const Tokenizer& tokenizer, std::string_view piece, bool is_first);

/// The documents of a source as tokens, by append_piece(). @throws as read_documents().
TokenizedText tokenize_text(TextSource& source, const Tokenizer& tokenizer, const TextLimits& limits,
                            const char* operation);

struct TextWindow {
  Window window;
  int64_t document_begin = 0;
};

/// All windows of a text, the longest first. Rows of a batch then have nearly the same length, and the batch that needs
/// the most memory comes first. @throws InputError if there is none.
std::vector<TextWindow> cut_text(const TokenizedText& text, int64_t size, int64_t stride, const char* operation);

/// What a scorer computes for a window.
/// @param tokens       of the whole text.
/// @param word_starts  Trunk::word_starts(); with them, the request begins with the word that the window opens in.
ScoreRequest score_request(std::span<const int32_t> tokens, const TextWindow& window,
                           const std::vector<uint8_t>& word_starts);

}  // namespace prism
