// Computes the tokens of many sequences together: prompts in chunks, then one token of each sequence a step.
//
//   Engine engine(model.decoder);
//   engine.submit({.tokens = prompt, .next = [&](std::span<const float> logits_V) { return sampler.pick(logits_V); }});
//   while (!engine.is_idle()) engine.step();
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "prism/attention/kv_cache.h"
#include "prism/attention/prefill.h"
#include "prism/models/decoder.h"

namespace prism {

struct EngineOptions {
  int64_t sequences = 32;      ///< at most computed at once; others wait
  int64_t step_tokens = 2048;  ///< tokens of prompts computed at once, a multiple of KvCache::kPage
  Prefill* prefill = nullptr;  ///< how attention over prompts is computed; must outlive the engine; null: dense
  std::optional<torch::ScalarType> cache_type = {};  ///< of keys and values (KvCacheOptions); std::nullopt: of products
};

/// The dtype of an engine's keys and values.
torch::ScalarType cache_type_of(const DecoderImpl& decoder, const EngineOptions& options);

/// Takes the hidden states [N, d_model] of some tokens of a sequence, the first of which is token `first`.
using HiddenTaker = std::function<void(int64_t first, const torch::Tensor& hidden_ND)>;

/// A sequence to compute.
struct EngineRequest {
  std::vector<int32_t> tokens;  ///< the prompt
  int64_t unread = 0;           ///< its first tokens that are not read; less than all
  /// Gives the next token from the logits [V] of all choices, or std::nullopt, which ends the sequence. It may submit
  /// further requests, but not cancel or resume any. Without it the sequence ends after its prompt, and no logits are
  /// computed.
  std::function<std::optional<int32_t>(std::span<const float>)> next = {};
  HiddenTaker take_hidden = {};  ///< called after each step that computed tokens from hidden_from on
  int64_t hidden_from = 0;       ///< an index of `tokens`
  bool decodes_prompt = false;   ///< computes one token of the prompt a step, with the kernels of decoding
  int64_t budget_tokens = 0;     ///< first tokens that are read and that head budgets decide by; 0: the prompt
  int64_t draw = 0;              ///< of random head budgets: another one gives other heads (BudgetNoise::first_row)
  int64_t room = 0;              ///< new tokens for which memory is reserved from the start
  int64_t slide = 0;  ///< tokens computed again, from position 0 on, when the context is full; 0: `next` must end first
  bool keeps = false;  ///< the sequence can be continued after its end (resume()) until it is cancelled
  /// With a selector, too, resume() reuses the common prefix, rounded down to a whole page; the selector then reads the
  /// rest as another chunk of the prompt.
  bool reuses_selected = false;
};

/// What a sequence took.
struct SequenceCounts {
  int64_t reused = 0;  ///< tokens of the prompt that the cache held already
  int64_t steps = 0;   ///< passes after those of the prompt
  int64_t slides = 0;  ///< how often a full context was computed again
};

/// One step computes one flat batch: a row of each sequence that decodes, and chunks of prompts in the order in which
/// they were submitted. Attention, selectors and head budgets are a sequence's own. With frozen weights and heads
/// that flash attention serves, a sequence's logits have the same bits in any batch: the kernels of a row depend on
/// whether it is decoded, not on other rows.
///
/// Prompts are cut into `chunk` tokens of the prefill if that is set; else, with dense attention, into what is left of
/// step_tokens, so that the next part begins at a multiple of KvCache::kPage. A selector without chunks, and head
/// budgets, read whole prompts.
class Engine {
 public:
  /// @throws InputError as check_prefill(), and for options out of range.
  explicit Engine(Decoder decoder, const EngineOptions& options = {});

  /// As KvCache::make_room().
  void make_room(int64_t pages) { cache_.make_room(pages); }

  /// @return  the sequence's number. @throws InputError for a prompt without tokens or longer than the context.
  int64_t submit(EngineRequest request);
  /// Continues a sequence that has ended and keeps its tokens. What the new prompt has in common with them is not
  /// computed again, except with head budgets or a selector, which read whole prompts.
  void resume(int64_t sequence, EngineRequest request);
  /// Submits a sequence that begins like one that has ended and keeps its tokens, which stays as it is. What they have
  /// in common is neither computed nor stored again, as resume() says.
  /// @return  the new sequence's number.
  int64_t fork(int64_t sequence, EngineRequest request);
  /// Adds a sequence that has ended, for resume(). @return  its number.
  int64_t restore(CachedPrompt prompt);
  /// The tokens of a sequence that are cached from position 0 on.
  std::span<const int32_t> cached(int64_t sequence) const;
  /// The first `length` of them, for restore().
  CachedPositions copy(int64_t sequence, int64_t length) const;
  /// Forgets a sequence.
  void cancel(int64_t sequence);

  struct Ended {
    int64_t sequence = 0;
    SequenceCounts counts;
  };
  /// Computes one flat batch. @return  the sequences that ended.
  /// @throws what a request's `next` throws, after the other sequences have been served; its sequence ends.
  std::vector<Ended> step();
  /// Tokens that the steps so far have computed.
  int64_t computed() const { return computed_; }
  /// Returns true if fork() reuses what sequences have in common: without a selector and without head budgets.
  bool can_share() const { return !selects_ && !has_budgets_; }
  /// Returns true if no sequence waits for a step.
  bool is_idle() const;

 private:
  struct Sequence {
    EngineRequest request;  ///< its tokens are all so far
    int64_t first = 0;      ///< the token at position 0
    int64_t cached = -1;    ///< its sequence of the cache; -1: none yet
    bool decodes = false;   ///< its next token is decoded
    bool has_ended = false;
    SequenceCounts counts;
  };
  /// The first tokens of a prompt that a sequence already holds, and that need not be computed again.
  int64_t reusable(int64_t sequence, const EngineRequest& request) const;
  /// Gives a sequence its place in the cache. @param running  sequences that have one. @return  false if none is left.
  bool begin(Sequence& sequence, int64_t& running);
  /// Positions for which a request reserves memory.
  int64_t positions_of(const EngineRequest& request) const;
  /// Tokens that are not computed yet.
  int64_t pending(const Sequence& sequence) const;
  /// Tokens of a prompt for the next step. @param left  of step_tokens.
  int64_t chunk_of(const Sequence& sequence, int64_t left) const;
  /// The sequences of the next step, those that decode first; opens those that have waited.
  std::vector<SequenceRows> next_rows(std::vector<Sequence*>& chosen);
  torch::Tensor hidden_of(const std::vector<Sequence*>& chosen, const std::vector<SequenceRows>& rows);
  /// Gives the request the hidden states that it takes. @param hidden_ND  of the step's tokens.
  void hand_over(const Sequence& sequence, const torch::Tensor& hidden_ND) const;
  /// Appends the next token, or ends the sequence.
  void take(Sequence& sequence, std::span<const float> logits_V);
  void end(Sequence& sequence);
  void check(const EngineRequest& request) const;

  Decoder decoder_;
  EngineOptions options_;
  Prefill* prefill_;
  bool selects_, has_budgets_;  ///< either reads prompts in one piece
  KvCache cache_;
  std::map<int64_t, Sequence> sequences_;
  int64_t submitted_ = 0, computed_ = 0;
};

}  // namespace prism
