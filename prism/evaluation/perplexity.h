// How well a model predicts a text: perplexity per token, word and byte, and bits per byte.
//
//   TextSource text({"novels.txt.xz"}, {});
//   PerplexityResult result = evaluate_perplexity(model.decoder, *model.tokenizer, text, {.window = 1024});
//   fmt::print("{} ({})\n", result.byte_perplexity(), fmt::join(result.conventions(), "; "));
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "prism/data/text_source.h"
#include "prism/evaluation/tasks/answers.h"
#include "prism/evaluation/tasks/task.h"
#include "prism/evaluation/text_windows.h"
#include "prism/models/decoder.h"

namespace prism {

/// The loss of one document of a text.
struct DocumentScore {
  double nats = 0;
  int64_t tokens = 0;  ///< predicted ones
};

/// With N the sum of -log p over all predicted tokens, in nats:
///
///   perplexity per unit = exp(N / units),  bits per byte = N / (bytes log 2)
///
/// Figures per word and per byte compare models with different tokenizers; figures per token do not.
struct PerplexityResult {
  double nats = 0;
  int64_t tokens = 0;  ///< predicted ones
  /// Words of the text, separated by white space (Unicode's White_Space). Attached punctuation belongs to its word.
  int64_t words = 0;
  int64_t bytes = 0;                     ///< UTF-8 bytes of the decompressed text, without separators between documents
  std::vector<DocumentScore> documents;  ///< in the order of the text
  int64_t windows = 0;
  int64_t window = 0, stride = 0;  ///< with defaults filled in
  bool cut = false;                ///< a document was longer than the window
  bool has_budgets = false;        ///< the model has head budgets
  std::string opening;             ///< the token before every document, "" if the tokenizer has none

  double token_perplexity() const;
  /// NaN for a text that is only white space.
  double word_perplexity() const;
  double byte_perplexity() const;
  double bits_per_byte() const;
  /// How the figures are computed, one sentence per convention; shown with the figures.
  std::vector<std::string> conventions() const;
};

/// The task `perplexity` with its windows filled in.
/// @param context      the most tokens of a window.
/// @param has_budgets  a model that answers has head budgets.
/// @throws InputError for a window beyond the context, a stride outside 1 to window, or a negative number of documents.
Task perplexity_task(const TextWindowOptions& options, int64_t context, bool has_budgets);

/// The figures of the answers to text_items().
/// @throws InputError if there was nothing to predict.
PerplexityResult perplexity_of(const Task& task, std::span<const TaskItem> items, std::span<const ItemAnswers> answers,
                               const TaskModel& model);

/// Scores every document separately; attention never crosses documents. If the tokenizer has an opening token, it
/// precedes every document, as in training. Otherwise a document's first token is not predicted, although its words and
/// bytes count. Special tokens spelled in the text stay text. A document longer than the window is cut as in windows.h.
///
/// Losses are float32 (computed in the decoder's compute dtype), their sum is float64. The whole text is held in
/// memory. With a selector or chunks, each window is processed as its own prompt without padding, which a selector
/// could see. Head budgets read the tokens before a window's first counted prediction, and the token that it is made
/// from.
///
/// @param prefill  how attention is computed, and in what chunks; null: dense, whole windows.
/// @throws InputError for an empty text or nothing to predict, as perplexity_task(), for ids beyond the model's
///         vocabulary, and what TextSource throws; FailedError for a loss that is not finite, or at SIGINT or SIGTERM
///         (core/stop.h).
PerplexityResult evaluate_perplexity(Decoder decoder, const Tokenizer& tokenizer, TextSource& text,
                                     const TextWindowOptions& options, Prefill* prefill = nullptr);

}  // namespace prism
