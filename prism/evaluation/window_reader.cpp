#include "prism/evaluation/window_reader.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

#include "prism/models/chunks.h"

namespace prism {
namespace {

/// Tokens of prompts computed together: enough for efficient products, few enough to keep the activations small.
constexpr int64_t kPromptTokens = 4096;

KvCacheOptions without_sequences(KvCacheOptions options) {
  options.sequences = 0;
  return options;
}

/// The windows that are computed together, from the first of `rest` on.
std::span<const TextWindow> next_group(std::span<const TextWindow> rest, WindowReader::Role role, int64_t chunk) {
  if (role == WindowReader::Role::decoded) return rest;
  size_t count = 0;
  for (int64_t tokens = 0; count < rest.size(); ++count) {
    const int64_t length = rest[count].window.length;
    tokens += chunk > 0 ? std::min(chunk, length) : length;
    if (count > 0 && tokens > kPromptTokens) break;
  }
  return rest.first(count);
}

/// Copies the rows that count from a step's rows, [step, d_model], to those of their window, [counted, d_model].
void keep_counted(const torch::Tensor& step_ND, const Window& window, int64_t first, const torch::Tensor& window_ND) {
  const int64_t skipped = std::max<int64_t>(0, window.counted_from - first), kept = step_ND.size(0) - skipped;
  if (kept <= 0) return;  // context only, or beyond the window's end
  window_ND.narrow(0, first + skipped - window.counted_from, kept).copy_(step_ND.narrow(0, skipped, kept));
}

}  // namespace

int64_t counted_predictions(std::span<const TextWindow> windows) {
  int64_t count = 0;
  for (const auto& each : windows) count += each.window.length - each.window.counted_from;
  return count;
}

WindowReader::WindowReader(Decoder decoder, KvCacheOptions cache, Prefill* prefill)
    : decoder_(std::move(decoder)),
      prefill_(prefill_for(decoder_->config(), prefill)),
      cache_(decoder_->config().layers, without_sequences(cache)) {}

torch::Tensor WindowReader::read(std::span<const int32_t> tokens, std::span<const TextWindow> windows, Role role,
                                 const std::function<void(int64_t)>& on_step) {
  const torch::NoGradGuard no_gradients;
  auto hidden_ND = at::empty({counted_predictions(windows), decoder_->config().d_model},
                             at::TensorOptions(decoder_->device()).dtype(decoder_->compute_type()));
  const int64_t chunk = prefill_ == nullptr ? 0 : prefill_->options().chunk;
  int64_t first = 0;
  while (!windows.empty()) {
    const auto group = next_group(windows, role, chunk);
    const int64_t count = counted_predictions(group);
    read_group(tokens, group, role, hidden_ND.narrow(0, first, count), on_step);
    first += count;
    windows = windows.subspan(group.size());
  }
  return hidden_ND;
}

void WindowReader::read_group(std::span<const int32_t> tokens, std::span<const TextWindow> windows, Role role,
                              const torch::Tensor& hidden_ND, const std::function<void(int64_t)>& on_step) {
  for (; sequences_ < std::ssize(windows); ++sequences_) cache_.open();
  const int64_t longest = windows.front().window.length, chunk = prefill_ == nullptr ? 0 : prefill_->options().chunk;
  const int64_t step = role == Role::decoded ? 1 : chunk == 0 ? longest : chunk;
  for (int64_t first = 0; first < longest; first += step) {
    const auto step_ND = read_step(tokens, windows, role, first, step);
    int64_t step_row = 0, window_row = 0;
    for (const auto& each : windows) {
      const auto& window = each.window;
      const int64_t counted = window.length - window.counted_from;
      const int64_t rows = std::clamp<int64_t>(window.length - first, 0, step);
      keep_counted(step_ND.narrow(0, step_row, rows), window, first, hidden_ND.narrow(0, window_row, counted));
      step_row += rows;
      window_row += counted;
    }
    if (on_step) on_step(step_row);
  }
  for (int64_t i = 0; i < std::ssize(windows); ++i) cache_.truncate(0, i);
}

torch::Tensor WindowReader::read_step(std::span<const int32_t> tokens, std::span<const TextWindow> windows, Role role,
                                      int64_t first, int64_t step) {
  const bool decodes = role == Role::decoded;
  ForwardContext context;
  context.cache = &cache_;
  context.prefill = prefill_;
  std::vector<int64_t> ids, openings;
  for (size_t i = 0; i < windows.size() && windows[i].window.length > first; ++i) {
    const auto& [window, document, begin] = windows[i];
    const int64_t count = std::min(step, window.length - first);
    const auto rows = tokens.subspan(static_cast<size_t>(window.begin + first), static_cast<size_t>(count));
    ids.insert(ids.end(), rows.begin(), rows.end());
    openings.push_back(decoder_->word_opening(
        tokens.subspan(static_cast<size_t>(begin), static_cast<size_t>(window.begin + first - begin))));
    context.rows.push_back({.sequence = static_cast<int64_t>(i),
                            .tokens = count,
                            .decodes = decodes,
                            .prompt_length = decodes ? 0 : window.length});
  }
  context.word_opening_B = torch::tensor(openings, torch::kLong);
  return decoder_(torch::tensor(ids, torch::kLong).unsqueeze(0), context)[0];
}

}  // namespace prism
