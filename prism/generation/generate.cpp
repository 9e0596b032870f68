#include "prism/generation/generate.h"

#include <algorithm>
#include <optional>
#include <span>

#include "prism/attention/prefill.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/timer.h"
#include "prism/core/utf8.h"
#include "prism/generation/text_stream.h"
#include "prism/models/chunks.h"

namespace prism {
namespace {

std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view prompt) {
  const size_t invalid = find_invalid_utf8(prompt);
  PRISM_CHECK(invalid == std::string_view::npos, "generate",
              "expected a prompt in UTF-8; found byte 0x{:02X} at offset {}.", static_cast<uint8_t>(prompt[invalid]),
              invalid);
  if (!prompt.empty()) return tokenizer.encode(prompt);
  const auto end_of_text = tokenizer.end_of_text();
  PRISM_CHECK(end_of_text.has_value(), "generate",
              "expected a prompt, because the tokenizer has no end-of-text token to start a document with; found an "
              "empty one.");
  return {*end_of_text};
}

/// Whether the window of positions moves with the text: learned ones cannot be taken beyond those that were learned.
bool context_slides(const ModelConfig& config) {
  return config.learned_positions;
}

/// How many tokens the context has room for behind the prompt; absent where it slides.
std::optional<int64_t> room_for(int64_t prompt_tokens, const ModelConfig& config) {
  if (context_slides(config)) return std::nullopt;
  const int64_t context = config.context;
  PRISM_CHECK(prompt_tokens < context, "generate",
              "expected a prompt shorter than the model's context of {} tokens; found {} tokens; shorten it to at most "
              "{}: this model has no rule for sliding its context.",
              context, prompt_tokens, context - 1);
  return context - prompt_tokens;
}

/// How many tokens to make at most.
int64_t new_token_limit(int64_t wanted, int64_t prompt_tokens, const ModelConfig& config) {
  PRISM_CHECK(wanted >= 0, "generate",
              "expected max_new_tokens of at least 1, or 0 for the default; found {}; raise it.", wanted);
  const auto room = room_for(prompt_tokens, config);
  PRISM_CHECK(!room || wanted <= *room, "generate",
              "expected prompt and new tokens within the model's context of {} tokens; found {} + {}; ask for at "
              "most {} new tokens or shorten the prompt: this model has no rule for sliding its context.",
              config.context, prompt_tokens, wanted, *room);
  return wanted > 0 ? wanted : std::min(room.value_or(kDefaultNewTokens), kDefaultNewTokens);
}

/// Logits [V] of the token behind `ids`, which join the past in the context's cache.
torch::Tensor next_logits(Decoder& decoder, std::span<const int32_t> ids, const ForwardContext& context,
                          int64_t chunk = 0) {
  const auto count = static_cast<int64_t>(ids.size());
  const auto tokens_BT = torch::empty({1, count}, torch::kLong);
  std::copy(ids.begin(), ids.end(), tokens_BT.data_ptr<int64_t>());
  const auto hidden_BTD = forward_in_chunks(decoder, tokens_BT, context, chunk);
  return decoder->head.logits(hidden_BTD.narrow(1, hidden_BTD.size(1) - 1, 1)).to(torch::kCPU, torch::kFloat).flatten();
}

}  // namespace

std::string finish_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::length:
      return "length";
    case FinishReason::end_of_text:
      return "end_of_text";
    case FinishReason::stop_string:
      return "stop_string";
    case FinishReason::interrupted:
      return "interrupted";
  }
  throw InternalError("generate", "unknown reason to finish.");
}

std::optional<int64_t> room_behind(const ModelConfig& config, const Tokenizer& tokenizer, std::string_view prompt) {
  return room_for(static_cast<int64_t>(encode_prompt(tokenizer, prompt).size()), config);
}

Generation generate(Decoder decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<void(std::string_view)>& on_text,
                    Prefill* prefill) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig& config = decoder->config();
  Generation result;
  result.prompt_ids = encode_prompt(tokenizer, prompt);
  const auto prompt_tokens = static_cast<int64_t>(result.prompt_ids.size());
  const int64_t limit = new_token_limit(options.max_new_tokens, prompt_tokens, config);
  const auto choices = static_cast<size_t>(std::min(config.vocab_size, tokenizer.vocab_size()));
  const std::optional<int32_t> end = options.ignore_end_of_text ? std::nullopt : tokenizer.end_of_text();
  Sampler sampler(options.sampler);
  TextStream stream(options.stop);
  const auto show = [&](const std::string& text) {
    result.text += text;
    if (on_text && !text.empty()) on_text(text);
  };

  const int64_t cached = std::min(prompt_tokens + limit, config.context);
  KvCache cache(config.layers, /*batch=*/1, cached, decoder->compute_type(), decoder->device());
  ForwardContext context;
  context.cache = &cache;
  context.prefill = prefill;
  auto seen = result.prompt_ids;  // all tokens so far
  const auto last_tokens = [&] {
    const auto count = std::min(seen.size(), static_cast<size_t>(config.context));
    return std::span<const int32_t>(seen).last(count);
  };
  Timer timer;
  auto logits_V = next_logits(decoder, last_tokens(), context, prefill == nullptr ? 0 : prefill->options().chunk);
  result.prompt_seconds = timer.seconds();
  context.prefill = nullptr;
  timer.restart();
  for (;;) {
    const int32_t id = sampler.pick(std::span(logits_V.data_ptr<float>(), choices));
    if (id == end) {
      result.finish = FinishReason::end_of_text;
      break;
    }
    result.ids.push_back(id);
    show(stream.push(tokenizer.bytes(id)));
    if (stream.stopped()) {
      result.finish = FinishReason::stop_string;
      break;
    }
    if (static_cast<int64_t>(result.ids.size()) == limit) break;
    if (options.heed_signals && stop_signal() != 0) {
      result.finish = FinishReason::interrupted;
      break;
    }
    seen.push_back(id);
    const bool slides = static_cast<int64_t>(seen.size()) > config.context;
    logits_V = slides ? next_logits(decoder, last_tokens(), {}) : next_logits(decoder, {&id, 1}, context);
    ++result.decode_steps;
  }
  result.decode_seconds = timer.seconds();
  show(stream.finish());
  return result;
}

}  // namespace prism
