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

/// New tokens for which the cache has room from the start. More than these make it grow.
constexpr int64_t kRoomAhead = 1024;

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

/// Adds new tokens and their text to a result, and decides when it ends.
class NewText {
 public:
  /// @param limit    number of new tokens.
  /// @param on_text  called with the text that becomes known, if given.
  NewText(const Tokenizer& tokenizer, const GenerateOptions& options, int64_t limit,
          const std::function<void(std::string_view)>& on_text, Generation& result)
      : tokenizer_(tokenizer),
        options_(options),
        limit_(limit),
        on_text_(on_text),
        result_(result),
        stream_(options.stop),
        // Text that follows nothing but special tokens is the beginning of a text.
        drops_space_(tokenizer.strips_first_space() &&
                     std::all_of(result.prompt_ids.begin(), result.prompt_ids.end(),
                                 [&](int32_t id) { return tokenizer.is_special(id); })) {}

  /// Adds the next token. @return  a reason if generation ends with it.
  std::optional<FinishReason> add(int32_t id) {
    if (!options_.ignore_end_of_text && tokenizer_.special_ids().is_end(id)) return FinishReason::end_of_text;
    result_.ids.push_back(id);
    auto bytes = tokenizer_.bytes(id);
    if (std::exchange(drops_space_, false) && bytes.starts_with(' ')) bytes.remove_prefix(1);
    show(stream_.push(bytes));
    if (stream_.stopped()) return FinishReason::stop_string;
    if (std::ssize(result_.ids) == limit_) return FinishReason::length;
    if (options_.stop_on_signals && stop_signal() != 0) return FinishReason::interrupted;
    return std::nullopt;
  }
  /// Shows the text that was held back.
  void finish() { show(stream_.finish()); }

 private:
  void show(const std::string& text) {
    result_.text += text;
    if (on_text_ && !text.empty()) on_text_(text);
  }

  const Tokenizer& tokenizer_;
  const GenerateOptions& options_;
  int64_t limit_;
  const std::function<void(std::string_view)>& on_text_;
  Generation& result_;
  TextStream stream_;
  bool drops_space_;
};

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
  if (cache_ == nullptr)
    cache_ = std::make_unique<KvCache>(config.layers, /*batch=*/1, std::max(capacity, capacity_),
                                       decoder_->compute_type(), decoder_->device());
  // A head budget is decided by the whole prompt, and the state of a selector ends with the prompt that it read.
  const bool reads_whole =
      layers_with_budgets(config) > 0 || (prefill != nullptr && prefill->options().selector != "dense");
  const auto most = reads_whole ? 0 : std::min(cached_.size(), ids.size() - 1);  // the last one gives the logits
  const auto same = std::mismatch(cached_.begin(), cached_.begin() + static_cast<std::ptrdiff_t>(most), ids.begin());
  cached_.erase(same.first, cached_.end());
  cache_->truncate(std::ssize(cached_));
  make_room(capacity);
  return std::ssize(cached_);
}

void Session::make_room(int64_t capacity) {
  if (capacity > cache_->capacity())
    cache_->grow(std::min(decoder_->config().context, std::max(capacity, 2 * cache_->capacity())));
}

torch::Tensor Session::read_prompt(Generation& result, int64_t capacity, Prefill* prefill) {
  const auto& ids = result.prompt_ids;
  const auto read = std::span(ids).subspan(static_cast<size_t>(result.unread));
  result.reused = prepare_cache(read, capacity, prefill);
  ForwardContext context;
  context.cache = cache_.get();
  context.prefill = prefill;
  const Timer timer;
  auto logits_V = next_logits(decoder_, ids, std::ssize(read) - result.reused, context,
                              prefill == nullptr ? 0 : prefill->options().chunk);
  cached_.assign(read.begin(), read.end());
  result.prompt_seconds = timer.seconds();
  return logits_V;
}

torch::Tensor Session::read_token(std::span<const int32_t> seen, int64_t kept, Generation& result) {
  const bool slides = cache_->length() == decoder_->config().context;
  const int64_t count = slides ? kept : 1;
  if (slides) {
    cache_->truncate(0);
    cached_.clear();
  }
  make_room(cache_->length() + count);
  ForwardContext context;
  context.cache = cache_.get();
  context.decoding_rows = slides ? 0 : count;
  auto logits_V = next_logits(decoder_, seen, count, context);
  cached_.insert(cached_.end(), seen.end() - count, seen.end());
  result.slides += slides;
  ++result.decode_steps;
  return logits_V;
}

Generation Session::generate(std::vector<int32_t> prompt_ids, const GenerateOptions& options,
                             const std::function<void(std::string_view)>& on_text, Prefill* prefill) {
  PRISM_CHECK(!prompt_ids.empty(), "generate",
              "expected a prompt of at least one token; found none; give it the token that opens texts.");
  const torch::NoGradGuard no_gradients;
  const ModelConfig& config = decoder_->config();
  prefill = prefill_for(config, prefill);
  Generation result;
  result.prompt_ids = std::move(prompt_ids);
  const auto prompt_tokens = std::ssize(result.prompt_ids);
  const int64_t read = tokens_read(prompt_tokens, config, options);
  const int64_t limit = new_token_limit(read, config, options);
  result.unread = prompt_tokens - read;
  const auto choices = static_cast<size_t>(std::min(config.vocab_size, tokenizer_.vocab_size()));
  Sampler sampler(options.sampler);
  NewText text(tokenizer_, options, limit, on_text, result);
  auto logits_V = read_prompt(result, std::min(read + std::min(limit, kRoomAhead), config.context), prefill);
  auto seen = result.prompt_ids;  // prompt and new tokens
  const Timer timer;
  for (;;) {
    const int32_t id = sampler.pick(std::span(logits_V.data_ptr<float>(), choices));
    if (const auto finish = text.add(id)) {
      result.finish = *finish;
      break;
    }
    seen.push_back(id);
    logits_V = read_token(seen, tokens_kept(config, options.slide), result);
  }
  result.decode_seconds = timer.seconds();
  text.finish();
  return result;
}

}  // namespace prism
