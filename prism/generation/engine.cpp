#include "prism/generation/engine.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "prism/core/error.h"
#include "prism/models/prompt_checks.h"

namespace prism {

torch::ScalarType cache_type_of(const DecoderImpl& decoder, const EngineOptions& options) {
  return options.cache_type.value_or(decoder.compute_type());
}

Engine::Engine(Decoder decoder, const EngineOptions& options)
    : decoder_(std::move(decoder)),
      options_(options),
      prefill_(prefill_for(decoder_->config(), options.prefill)),
      selects_(prefill_ != nullptr && prefill_->selects()),
      has_budgets_(layers_with_budgets(decoder_->config()) > 0),
      cache_(decoder_->config().layers,
             {.sequences = 0, .type = cache_type_of(*decoder_, options), .device = decoder_->device()}) {
  PRISM_CHECK(options.sequences >= 1, "engine", "expected at least 1 sequence at once; found {}; raise it.",
              options.sequences);
  PRISM_CHECK(options.step_tokens >= KvCache::kPage && options.step_tokens % KvCache::kPage == 0, "engine",
              "expected a multiple of {} tokens a step; found {}; change it.", KvCache::kPage, options.step_tokens);
}

void Engine::check(const EngineRequest& request) const {
  const int64_t read = std::ssize(request.tokens) - request.unread;
  PRISM_CHECK(request.unread >= 0 && read >= 1, "engine",
              "expected a prompt of at least one token; found none; give it the token that opens texts.");
  PRISM_CHECK(read <= decoder_->config().context, "engine",
              "expected a prompt of at most {} tokens, the model's context; found {}; shorten it.",
              decoder_->config().context, read);
  PRISM_ASSERT(!has_budgets_ || !request.decodes_prompt || read == 1, "engine",
               "head budgets decide by whole prompts, but one of {} tokens is decoded", read);
}

int64_t Engine::submit(EngineRequest request) {
  check(request);
  const int64_t first = request.unread;
  const bool decodes = request.decodes_prompt;
  sequences_[submitted_] = {.request = std::move(request), .first = first, .decodes = decodes, .counts = {}};
  return submitted_++;
}

int64_t Engine::reusable(int64_t sequence, const EngineRequest& request) const {
  const auto& begun = sequences_.at(sequence);
  PRISM_ASSERT(begun.has_ended && begun.cached >= 0, "engine", "sequence {} cannot be continued", sequence);
  if (has_budgets_ || (selects_ && !request.reuses_selected)) return 0;
  const auto before = cached(sequence);
  const auto prompt = std::span<const int32_t>(request.tokens).subspan(static_cast<size_t>(request.unread));
  // The last token is computed always, since its logits are needed.
  const auto most = static_cast<std::ptrdiff_t>(std::min(before.size(), prompt.size() - 1));
  const int64_t same = std::mismatch(before.begin(), before.begin() + most, prompt.begin()).first - before.begin();
  return selects_ ? same / KvCache::kPage * KvCache::kPage : same;
}

void Engine::resume(int64_t sequence, EngineRequest request) {
  check(request);
  const int64_t same = reusable(sequence, request), first = request.unread;
  const bool decodes = request.decodes_prompt;
  auto& resumed = sequences_.at(sequence);
  cache_.truncate(same, resumed.cached);
  cache_.reserve(positions_of(request), resumed.cached);
  resumed = {.request = std::move(request),
             .first = first,
             .cached = resumed.cached,
             .decodes = decodes,
             .counts = {.reused = same}};
}

int64_t Engine::fork(int64_t sequence, EngineRequest request) {
  check(request);
  // The selector's state of what is reused stays with the sequence that has computed it.
  const int64_t same = can_share() ? reusable(sequence, request) : 0;
  const int64_t forked = submit(std::move(request));
  auto& begun = sequences_.at(forked);
  begun.cached = same == 0 ? cache_.open() : cache_.fork(same, sequences_.at(sequence).cached);
  cache_.reserve(positions_of(begun.request), begun.cached);
  begun.counts.reused = same;
  return forked;
}

int64_t Engine::restore(CachedPrompt prompt) {
  Sequence restored{.request = {.tokens = std::move(prompt.tokens), .keeps = true}, .counts = {}};
  restored.cached = cache_.open();
  restored.has_ended = true;
  cache_.restore(prompt.positions, restored.cached);
  sequences_[submitted_] = std::move(restored);
  return submitted_++;
}

std::span<const int32_t> Engine::cached(int64_t number) const {
  const auto& sequence = sequences_.at(number);
  return std::span(sequence.request.tokens)
      .subspan(static_cast<size_t>(sequence.first), static_cast<size_t>(cache_.length(sequence.cached)));
}

CachedPositions Engine::copy(int64_t sequence, int64_t length) const {
  return cache_.copy(length, sequences_.at(sequence).cached);
}

void Engine::cancel(int64_t sequence) {
  const auto found = sequences_.find(sequence);
  if (found == sequences_.end()) return;
  if (found->second.cached >= 0) cache_.close(found->second.cached);
  sequences_.erase(found);
}

bool Engine::is_idle() const {
  return std::all_of(sequences_.begin(), sequences_.end(), [](const auto& each) { return each.second.has_ended; });
}

int64_t Engine::positions_of(const EngineRequest& request) const {
  return std::min(decoder_->config().context, std::ssize(request.tokens) - request.unread + request.room);
}

int64_t Engine::pending(const Sequence& sequence) const {
  return std::ssize(sequence.request.tokens) - sequence.first - cache_.length(sequence.cached);
}

int64_t Engine::chunk_of(const Sequence& sequence, int64_t left) const {
  const int64_t all = pending(sequence), set = prefill_ == nullptr ? 0 : prefill_->options().chunk;
  if (set > 0) return std::min(all, set);
  if (selects_ || has_budgets_ || all <= left) return all;
  const int64_t past = cache_.length(sequence.cached);
  return std::max<int64_t>(0, (past + left) / KvCache::kPage * KvCache::kPage - past);
}

bool Engine::begin(Sequence& sequence, int64_t& running) {
  if (sequence.cached >= 0) return true;
  if (running >= options_.sequences) return false;
  ++running;
  sequence.cached = cache_.open();
  cache_.reserve(positions_of(sequence.request), sequence.cached);
  return true;
}

std::vector<SequenceRows> Engine::next_rows(std::vector<Sequence*>& chosen) {
  std::vector<SequenceRows> rows;
  int64_t running = std::count_if(sequences_.begin(), sequences_.end(),
                                  [](const auto& each) { return each.second.cached >= 0 && !each.second.has_ended; });
  for (auto& [number, sequence] : sequences_) {
    if (sequence.has_ended || !sequence.decodes || !begin(sequence, running)) continue;
    chosen.push_back(&sequence);
    rows.push_back({.sequence = sequence.cached, .tokens = 1, .decodes = true, .draw = sequence.request.draw});
  }
  int64_t left = options_.step_tokens;
  for (auto& [number, sequence] : sequences_) {
    if (sequence.has_ended || sequence.decodes) continue;
    if (!begin(sequence, running)) continue;  // another one, which has begun, may follow
    const int64_t tokens = left > 0 ? chunk_of(sequence, left) : 0;
    if (tokens == 0) break;
    left -= tokens;
    chosen.push_back(&sequence);
    rows.push_back({.sequence = sequence.cached,
                    .tokens = tokens,
                    .prompt_length = cache_.length(sequence.cached) + pending(sequence),
                    .draw = sequence.request.draw});
  }
  return rows;
}

torch::Tensor Engine::hidden_of(const std::vector<Sequence*>& chosen, const std::vector<SequenceRows>& rows) {
  int64_t total = 0;
  for (const auto& each : rows) total += each.tokens;
  computed_ += total;
  const auto tokens_BT = at::empty({1, total}, torch::kLong);
  auto* token = tokens_BT.mutable_data_ptr<int64_t>();
  ForwardContext context;
  context.cache = &cache_;
  context.prefill = prefill_;
  context.rows = rows;
  context.word_opening_B = at::empty({std::ssize(rows)}, torch::kLong);
  if (has_budgets_) context.prompts_B = at::empty({std::ssize(rows)}, torch::kInt);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<const int32_t> all(chosen[i]->request.tokens);
    const auto past = static_cast<size_t>(chosen[i]->first + cache_.length(rows[i].sequence));
    token = std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(past), rows[i].tokens, token);
    context.word_opening_B.mutable_data_ptr<int64_t>()[i] = decoder_->word_opening(all.first(past));
    if (!has_budgets_) continue;
    const int64_t read = chosen[i]->request.budget_tokens;
    context.prompts_B.mutable_data_ptr<int32_t>()[i] = static_cast<int32_t>(read > 0 ? read : rows[i].tokens);
  }
  return decoder_(tokens_BT, context);
}

std::vector<Engine::Ended> Engine::step() {
  const torch::NoGradGuard no_gradients;
  std::vector<Sequence*> chosen;
  const auto rows = next_rows(chosen);
  if (rows.empty()) return {};
  const auto hidden_ND = hidden_of(chosen, rows)[0];
  std::exception_ptr failure;
  const auto guarded = [&failure, this](Sequence& sequence, const auto& call) {
    try {
      call();
    } catch (...) {
      end(sequence);
      if (!failure) failure = std::current_exception();
    }
  };
  std::vector<Sequence*> asked;  // for their next token
  std::vector<int64_t> last;     // their last rows
  int64_t row = 0;
  for (size_t i = 0; i < rows.size(); row += rows[i++].tokens) {
    auto& sequence = *chosen[i];
    guarded(sequence, [&] { hand_over(sequence, hidden_ND.narrow(0, row, rows[i].tokens)); });
    if (sequence.has_ended || pending(sequence) > 0) continue;
    if (!sequence.request.next) {
      end(sequence);
      continue;
    }
    asked.push_back(&sequence);
    last.push_back(row + rows[i].tokens - 1);
  }
  if (!asked.empty()) {
    const auto row_R = torch::tensor(last, torch::kLong).to(hidden_ND.device());
    const auto logits_RV =
        decoder_->head.logits(hidden_ND.index_select(0, row_R)).to(torch::kCPU, torch::kFloat).contiguous();
    const auto choices = static_cast<size_t>(logits_RV.size(1));
    for (size_t i = 0; i < asked.size(); ++i)
      guarded(*asked[i], [&] { take(*asked[i], {logits_RV.const_data_ptr<float>() + i * choices, choices}); });
  }
  std::vector<Ended> ended;
  for (auto each = sequences_.begin(); each != sequences_.end();) {
    const auto& [number, sequence] = *each;
    const bool ends = sequence.has_ended && std::find(chosen.begin(), chosen.end(), &sequence) != chosen.end();
    if (ends) ended.push_back({number, sequence.counts});
    each = ends && !sequence.request.keeps ? sequences_.erase(each) : std::next(each);
  }
  if (failure) std::rethrow_exception(failure);
  return ended;
}

void Engine::hand_over(const Sequence& sequence, const torch::Tensor& hidden_ND) const {
  const auto& request = sequence.request;
  if (!request.take_hidden) return;
  const int64_t rows = hidden_ND.size(0), begin = sequence.first + cache_.length(sequence.cached) - rows;
  const int64_t skipped = std::clamp<int64_t>(request.hidden_from - begin, 0, rows);
  if (skipped < rows) request.take_hidden(begin + skipped, hidden_ND.narrow(0, skipped, rows - skipped));
}

void Engine::take(Sequence& sequence, std::span<const float> logits_V) {
  const auto token = sequence.request.next(logits_V);
  if (!token) return end(sequence);
  sequence.request.tokens.push_back(*token);
  ++sequence.counts.steps;
  sequence.decodes = cache_.length(sequence.cached) < decoder_->config().context;
  if (sequence.decodes) return;
  PRISM_ASSERT(sequence.request.slide > 0, "engine", "a sequence without an end beyond the context");
  sequence.first = std::ssize(sequence.request.tokens) - sequence.request.slide;
  cache_.truncate(0, sequence.cached);
  ++sequence.counts.slides;
}

void Engine::end(Sequence& sequence) {
  sequence.has_ended = true;
  sequence.request.next = {};
  sequence.request.take_hidden = {};
  if (sequence.request.keeps) return;
  cache_.close(sequence.cached);
  sequence.cached = -1;
}

}  // namespace prism
