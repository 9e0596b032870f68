#include "prism/generation/generate.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "prism/attention/prefill.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/text/utf8.h"
#include "prism/core/timer.h"
#include "prism/generation/text_stream.h"
#include "prism/models/chunks.h"

namespace prism {
namespace {

/// Tokens recomputed when the context is full; 0: the context does not slide. Learned positions have no values beyond
/// the context, so such a context always slides.
int64_t tokens_kept(const ModelConfig& config, bool slide) {
  if (config.learned_positions) return config.context;
  return slide ? std::max<int64_t>(1, config.context / 2) : 0;
}

/// Number of tokens of a prompt that are read. A prompt that is cut leaves room for the new tokens, unless the context
/// slides.
int64_t tokens_read(int64_t prompt_tokens, const ModelConfig& config, const GenerateOptions& options) {
  const bool slides = tokens_kept(config, options.slide) > 0;
  const int64_t most = slides ? config.context : config.context - 1;
  const bool may_cut = config.learned_positions || (options.truncate_prompt && most > 0);
  PRISM_CHECK(
      prompt_tokens <= most || may_cut, "generate",
      "expected a prompt of at most {} tokens in the model's context of {} tokens; found {} tokens; shorten it, "
      "or give {}.",
      most, config.context, prompt_tokens, most == 0 ? "--slide" : "--truncate-prompt");
  if (slides || !may_cut) return std::min(prompt_tokens, most);
  PRISM_CHECK(options.max_new_tokens < config.context, "generate",
              "expected fewer new tokens than the model's context of {} tokens; found {}; ask for at most {}, or give "
              "--slide.",
              config.context, options.max_new_tokens, config.context - 1);
  const bool too_long = prompt_tokens > most;
  const int64_t wanted = options.max_new_tokens > 0 ? options.max_new_tokens
                         : too_long                 ? std::min(kDefaultNewTokens, config.context / 2)
                                                    : 1;
  return std::min(prompt_tokens, std::max<int64_t>(1, config.context - wanted));
}

/// Maximum number of new tokens. @param read  tokens of the prompt that are read.
int64_t new_token_limit(int64_t read, const ModelConfig& config, const GenerateOptions& options) {
  const int64_t wanted = options.max_new_tokens, room = config.context - read;
  PRISM_CHECK(wanted >= 0, "generate",
              "expected max_new_tokens of at least 1, or 0 for the default; found {}; raise it.", wanted);
  if (tokens_kept(config, options.slide) > 0) return wanted > 0 ? wanted : kDefaultNewTokens;
  PRISM_CHECK(wanted <= room, "generate",
              "expected prompt and new tokens within the model's context of {} tokens; found {} + {}; ask for at "
              "most {} new {}, shorten the prompt, or give --slide.",
              config.context, read, wanted, room, room == 1 ? "token" : "tokens");
  return wanted > 0 ? wanted : std::min(room, kDefaultNewTokens);
}

/// Logits [V] of the token after `seen`, of which the last `count` are appended to the context's cache.
torch::Tensor next_logits(Decoder& decoder, std::span<const int32_t> seen, int64_t count, ForwardContext context,
                          int64_t chunk = 0) {
  const auto before = seen.first(seen.size() - static_cast<size_t>(count));
  context.word_opening_B = torch::full({1}, decoder->word_opening(before), torch::kLong);
  const auto tokens_BT = torch::empty({1, count}, torch::kLong);
  std::copy(seen.begin() + static_cast<std::ptrdiff_t>(before.size()), seen.end(), tokens_BT.data_ptr<int64_t>());
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

std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, std::string_view prompt, const std::string& bos) {
  const size_t invalid = find_invalid_utf8(prompt);
  PRISM_CHECK(invalid == std::string_view::npos, "generate",
              "expected a prompt in UTF-8; found byte 0x{:02X} at offset {}; convert it.",
              static_cast<uint8_t>(prompt[invalid]), invalid);
  PRISM_CHECK(bos == "auto" || bos == "on" || bos == "off", "generate",
              "bos: expected auto, on or off; found {}; choose one of them.", bos);
  const SpecialIds& special = tokenizer.special_ids();
  PRISM_CHECK(special.opening || (!prompt.empty() && bos != "on"), "generate",
              "expected a prompt, and bos auto or off, because the tokenizer has no token that opens a text; found {}; "
              "change it.",
              prompt.empty() ? "an empty prompt" : "bos on");
  std::vector<int32_t> ids;
  if (!prompt.empty()) ids = tokenizer.encode(prompt);
  const bool opens = ids.empty() || bos == "on" || (bos == "auto" && special.opens_prompts);
  if (opens && (ids.empty() || ids.front() != *special.opening)) ids.insert(ids.begin(), *special.opening);
  return ids;
}

std::optional<int64_t> room_behind(const ModelConfig& config, const Tokenizer& tokenizer, std::string_view prompt) {
  const auto tokens = static_cast<int64_t>(encode_prompt(tokenizer, prompt, "auto").size());
  const int64_t read = tokens_read(tokens, config, {});
  return config.learned_positions ? std::nullopt : std::optional(config.context - read);
}

Generation generate(Decoder decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<void(std::string_view)>& on_text,
                    Prefill* prefill) {
  return Session(std::move(decoder), tokenizer)
      .generate(encode_prompt(tokenizer, prompt, options.bos), options, on_text, prefill);
}

Session::Session(Decoder decoder, const Tokenizer& tokenizer, int64_t capacity)
    : decoder_(std::move(decoder)), tokenizer_(tokenizer), capacity_(std::min(capacity, decoder_->config().context)) {}

int64_t Session::prepare_cache(std::span<const int32_t> ids, int64_t capacity, const Prefill* prefill) {
  const ModelConfig& config = decoder_->config();
  if (cache_ == nullptr || capacity > capacity_) {
    capacity_ = cache_ == nullptr ? std::max(capacity, capacity_) : std::min(config.context, 2 * capacity);
    cache_ =
        std::make_unique<KvCache>(config.layers, /*batch=*/1, capacity_, decoder_->compute_type(), decoder_->device());
    cached_.clear();
  }
  // A head budget is decided by the whole prompt, and the state of a selector ends with the prompt that it read.
  const bool reads_whole =
      layers_with_budgets(config) > 0 || (prefill != nullptr && prefill->options().selector != "dense");
  const auto most = reads_whole ? 0 : std::min(cached_.size(), ids.size() - 1);  // the last one gives the logits
  const auto same = std::mismatch(cached_.begin(), cached_.begin() + static_cast<std::ptrdiff_t>(most), ids.begin());
  cached_.erase(same.first, cached_.end());
  cache_->truncate(std::ssize(cached_));
  return std::ssize(cached_);
}

Generation Session::generate(std::vector<int32_t> prompt_ids, const GenerateOptions& options,
                             const std::function<void(std::string_view)>& on_text, Prefill* prefill) {
  const torch::NoGradGuard no_gradients;
  const ModelConfig& config = decoder_->config();
  prefill = prefill_for(config, prefill);
  Generation result;
  result.prompt_ids = std::move(prompt_ids);
  const auto prompt_tokens = std::ssize(result.prompt_ids);
  const int64_t read = tokens_read(prompt_tokens, config, options), kept = tokens_kept(config, options.slide);
  const int64_t limit = new_token_limit(read, config, options);
  result.unread = prompt_tokens - read;
  const auto choices = static_cast<size_t>(std::min(config.vocab_size, tokenizer_.vocab_size()));
  Sampler sampler(options.sampler);
  TextStream stream(options.stop);
  // Text that follows nothing but special tokens is the beginning of a text.
  bool drops_space =
      tokenizer_.strips_first_space() && std::all_of(result.prompt_ids.begin(), result.prompt_ids.end(),
                                                     [&](int32_t id) { return tokenizer_.is_special(id); });
  const auto show = [&](const std::string& text) {
    result.text += text;
    if (on_text && !text.empty()) on_text(text);
  };
  /// Adds the next token; returns a reason if generation ends with it.
  const auto finish_with = [&](int32_t id) -> std::optional<FinishReason> {
    if (!options.ignore_end_of_text && tokenizer_.special_ids().is_end(id)) return FinishReason::end_of_text;
    result.ids.push_back(id);
    auto bytes = tokenizer_.bytes(id);
    if (std::exchange(drops_space, false) && bytes.starts_with(' ')) bytes.remove_prefix(1);
    show(stream.push(bytes));
    if (stream.stopped()) return FinishReason::stop_string;
    if (std::ssize(result.ids) == limit) return FinishReason::length;
    if (options.stop_on_signals && stop_signal() != 0) return FinishReason::interrupted;
    return std::nullopt;
  };

  auto seen = result.prompt_ids;  // prompt and new tokens
  const auto start = static_cast<size_t>(result.unread);
  result.reused = prepare_cache(std::span(seen).subspan(start), std::min(read + limit, config.context), prefill);
  ForwardContext context;
  context.cache = cache_.get();
  context.prefill = prefill;
  Timer timer;
  auto logits_V =
      next_logits(decoder_, seen, read - result.reused, context, prefill == nullptr ? 0 : prefill->options().chunk);
  cached_.assign(seen.begin() + result.unread, seen.end());
  result.prompt_seconds = timer.seconds();
  context.prefill = nullptr;
  timer.restart();
  for (;;) {
    const int32_t id = sampler.pick(std::span(logits_V.data_ptr<float>(), choices));
    if (const auto finish = finish_with(id)) {
      result.finish = *finish;
      break;
    }
    seen.push_back(id);
    const bool slides = cache_->length() == config.context;
    if (slides) cache_->truncate(0);
    logits_V = next_logits(decoder_, seen, slides ? kept : 1, context);
    if (slides)
      cached_.assign(seen.end() - kept, seen.end());
    else
      cached_.push_back(id);
    result.slides += slides;
    ++result.decode_steps;
  }
  result.decode_seconds = timer.seconds();
  show(stream.finish());
  return result;
}

}  // namespace prism
