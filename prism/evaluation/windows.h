// How a document longer than a model's context is cut, so that every token is predicted once.
//
//   for (const Window& window : cut_windows(document_begin, document_tokens, 1024, 512)) ...
#pragma once

#include <cstdint>
#include <vector>

namespace prism {

/// A stretch of tokens that is scored in one pass: the model reads `length` tokens from `begin` on and predicts the
/// tokens at begin + 1 ... begin + length. Predictions before `counted_from` (0 is the first) are context only.
struct Window {
  int64_t begin = 0, length = 0, counted_from = 0;
};

/// Windows over the tokens [begin, begin + tokens) of one document.
///
/// The first window reads `size` tokens and counts all its predictions; each later one starts `stride` tokens further
/// on and counts only what no window before it predicted, its last `stride` predictions. So with stride = size the
/// windows stand side by side, and with a smaller stride every token but the first `size` is predicted from at least
/// size - stride + 1 tokens. The last window ends with the document. One token, or none, gives no window.
///
/// @param size    tokens that are read at most, at least 1.
/// @param stride  from 1 to size.
std::vector<Window> cut_windows(int64_t begin, int64_t tokens, int64_t size, int64_t stride);

}  // namespace prism
