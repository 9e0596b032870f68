#include "prism/generation/generate.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/utf8.h"

namespace prism {
namespace {

/// The pages that sequences can take together. @param positions  that each sequence can take.
/// @throws InputError if a decoder on the CPU has no memory for them. @param texts, remedy  in words.
int64_t pages_at_once(const Decoder& decoder, std::vector<int64_t> positions, const EngineOptions& options,
                      const std::string& texts, const char* remedy) {
  std::sort(positions.begin(), positions.end(), std::greater<>());
  positions.resize(std::min(positions.size(), static_cast<size_t>(options.sequences)));
  int64_t pages = 0;
  for (const int64_t each : positions) pages += KvCache::pages_for(each);
  if (!decoder->device().is_cpu()) return pages;
  const auto bytes = kv_cache_bytes(decoder->config().layers, pages * KvCache::kPage, cache_type_of(*decoder, options));
  const auto needed = static_cast<double>(bytes), total = static_cast<double>(available_memory_bytes());
  PRISM_CHECK(needed < total, "generate",
              "expected keys and values of {} that fit into free memory, {}B; found {}B; lower {}.", texts,
              short_number(total), short_number(needed), remedy);
  return pages;
}

}  // namespace

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

std::optional<int64_t> room_after(const ModelConfig& config, const Tokenizer& tokenizer, std::string_view prompt) {
  const auto tokens = static_cast<int64_t>(encode_prompt(tokenizer, prompt, "auto").size());
  const int64_t read = tokens_read(tokens, config, {});
  return config.learned_positions ? std::nullopt : std::optional(config.context - read);
}

void check_memory(const Decoder& decoder, const Tokenizer& tokenizer, const std::vector<int32_t>& prompt_ids,
                  const GenerateOptions& options, const EngineOptions& engine) {
  const Continuation text(decoder->config(), tokenizer, prompt_ids, options);
  pages_at_once(decoder, {text.positions()}, engine, "the text", "--max-new-tokens");
}

Generation generate(Decoder decoder, const Tokenizer& tokenizer, std::string_view prompt,
                    const GenerateOptions& options, const std::function<void(std::string_view)>& on_text,
                    const EngineOptions& engine) {
  auto ids = encode_prompt(tokenizer, prompt, options.bos);
  check_memory(decoder, tokenizer, ids, options, engine);
  return Session(std::move(decoder), tokenizer, engine).generate(std::move(ids), options, on_text);
}

bool generate_all(Decoder decoder, const Tokenizer& tokenizer, const std::vector<Prompt>& prompts,
                  const EngineOptions& options, const std::function<void(size_t, Generation&)>& on_end) {
  std::vector<std::unique_ptr<Continuation>> texts;
  std::vector<int64_t> positions;
  bool stops = false;
  for (const auto& prompt : prompts) {
    texts.push_back(std::make_unique<Continuation>(decoder->config(), tokenizer, prompt.ids, prompt.options));
    positions.push_back(texts.back()->positions());
    stops = stops || prompt.options.stop_on_signals;
  }
  const auto together = std::min(std::ssize(texts), options.sequences);
  const int64_t pages = pages_at_once(decoder, std::move(positions), options, counted(together, "text") + " at once",
                                      "--parallel or --max-new-tokens");
  Engine engine(std::move(decoder), options);
  engine.make_room(pages);
  std::map<int64_t, size_t> number;  // of each of the engine's sequences
  for (size_t i = 0; i < texts.size(); ++i) number[engine.submit(texts[i]->request())] = i;
  while (!engine.is_idle()) {
    if (stops && stop_signal() != 0) return false;
    for (const auto& [sequence, counts] : engine.step()) {
      const size_t i = number.at(sequence);
      texts[i]->finish(counts);
      on_end(i, texts[i]->result());
      texts[i].reset();
    }
  }
  return true;
}

Session::Session(Decoder decoder, const Tokenizer& tokenizer, EngineOptions engine)
    : config_(decoder->config()), tokenizer_(tokenizer) {
  engine.sequences = 1;
  engine_ = std::make_unique<Engine>(std::move(decoder), engine);
}

Generation Session::generate(std::vector<int32_t> prompt_ids, const GenerateOptions& options,
                             const std::function<void(std::string_view)>& on_text) {
  Continuation text(config_, tokenizer_, std::move(prompt_ids), options, on_text);
  try {
    auto request = text.request();
    request.keeps = true;
    request.reuses_selected = std::exchange(is_restored_, false);
    if (sequence_) {
      engine_->resume(*sequence_, std::move(request));
    } else {
      sequence_ = engine_->submit(std::move(request));
    }
    while (!engine_->is_idle()) {
      if (options.stop_on_signals && stop_signal() != 0 && text.result().ids.empty()) {  // while the prompt is read
        engine_->cancel(*std::exchange(sequence_, std::nullopt));
        text.result().finish = FinishReason::interrupted;
        break;
      }
      for (const auto& ended : engine_->step()) text.finish(ended.counts);
    }
  } catch (...) {
    if (sequence_) engine_->cancel(*std::exchange(sequence_, std::nullopt));
    throw;
  }
  return std::move(text.result());
}

void Session::restore(CachedPrompt prompt) {
  if (sequence_) engine_->cancel(*sequence_);
  sequence_ = engine_->restore(std::move(prompt));
  is_restored_ = true;
}

std::span<const int32_t> Session::cached() const {
  return sequence_ ? engine_->cached(*sequence_) : std::span<const int32_t>();
}

CachedPrompt Session::copy(int64_t length) const {
  const auto tokens = cached().first(static_cast<size_t>(length));
  return {{tokens.begin(), tokens.end()}, engine_->copy(*sequence_, length)};
}

}  // namespace prism
