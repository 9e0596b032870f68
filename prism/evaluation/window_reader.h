// Reads windows of a text through a model and its cache, as prompts or token by token.
//
//   WindowReader reader(model.decoder, {.type = torch::kBFloat16});
//   auto hidden_ND = reader.read(text.tokens, windows, WindowReader::Role::decoded);
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "prism/attention/kv_cache.h"
#include "prism/attention/prefill.h"
#include "prism/evaluation/text_windows.h"
#include "prism/models/decoder.h"

namespace prism {

class WindowReader {
 public:
  /// How the rows of a window are computed.
  enum class Role {
    prompt,   ///< as a prompt: at once, or in the prefill's chunks
    decoded,  ///< each token by itself, with the kernels of decoding
  };

  /// @param cache    type and device of keys and values; the reader opens the sequences.
  /// @param prefill  how prompts are read; null: dense, at once. Must outlive the reader.
  /// @throws InputError as check_prefill().
  WindowReader(Decoder decoder, KvCacheOptions cache, Prefill* prefill = nullptr);

  /// The hidden states of the predictions that count, [N, d_model]: those of the first window, then those of the next.
  /// Windows are sequences of their own. Prompts are computed in flat batches of some thousand tokens; decoding
  /// computes one row of every window at a time, so that the weights are read once for all of them.
  ///
  /// @param tokens   of the whole text.
  /// @param windows  the longest first.
  /// @param on_step  called with the number of tokens that each step has computed.
  torch::Tensor read(std::span<const int32_t> tokens, std::span<const TextWindow> windows, Role role,
                     const std::function<void(int64_t)>& on_step = {});

 private:
  /// Reads windows that are computed together.
  void read_group(std::span<const int32_t> tokens, std::span<const TextWindow> windows, Role role,
                  const torch::Tensor& hidden_ND, const std::function<void(int64_t)>& on_step);
  /// The hidden states of rows [first, first + step) of each window that is so long.
  torch::Tensor read_step(std::span<const int32_t> tokens, std::span<const TextWindow> windows, Role role,
                          int64_t first, int64_t step);

  Decoder decoder_;
  Prefill* prefill_;
  KvCache cache_;
  int64_t sequences_ = 0;  ///< open ones of the cache
};

/// Predictions of these windows that count.
int64_t counted_predictions(std::span<const TextWindow> windows);

}  // namespace prism
