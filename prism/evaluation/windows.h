// Cuts a document that is longer than a model's context into windows that predict every token once.
//
//   for (const Window& window : cut_windows(document_begin, document_tokens, 1024, 512)) ...
#pragma once

#include <cstdint>
#include <vector>

namespace prism {

/// Tokens scored in one pass. The model reads `length` tokens from `begin` on and predicts the tokens at
/// begin + 1 ... begin + length. Predictions before number `counted_from` (from 0) are context only and do not count.
struct Window {
  int64_t begin = 0, length = 0, counted_from = 0;

  /// Those that count.
  int64_t predictions() const { return length - counted_from; }
};

/// Windows over the tokens [begin, begin + tokens) of one document.
///
/// The first window reads `size` tokens and counts all its predictions. Each later window starts `stride` tokens
/// further on and counts only predictions that no earlier window made, its last `stride` ones. With stride = size the
/// windows do not overlap. With a smaller stride, every token after the first `size` is predicted from at least
/// size - stride + 1 tokens. The last window ends with the document. A document of one token or none gives no window.
///
/// @param size    maximum tokens read by a window, at least 1.
/// @param stride  1 to size.
std::vector<Window> cut_windows(int64_t begin, int64_t tokens, int64_t size, int64_t stride);

}  // namespace prism
