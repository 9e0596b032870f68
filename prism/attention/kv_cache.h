// Key/value cache of sequences of their own lengths, in pages of 128 positions. Each layer has its own number and width
// of heads. Layers with a head budget store only the heads that the prompt decided to compute, outside the pages.
//
//   KvCache cache(config.layers, {.sequences = 1, .positions = 1024, .type = torch::kBFloat16});
//   context.cache = &cache;     // the model begins a step, each layer appends, and the model ends the step
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "prism/attention/budget/head_weights.h"
#include "prism/attention/layer_config.h"
#include "prism/kernels/attention/attend.h"
#include "prism/kernels/attention/store_in_pages.h"

namespace prism {

class SelectorState;

/// Bytes of keys and values of `tokens` positions in all layers, if every head is computed. @param type  as
/// KvCacheOptions::type.
int64_t kv_cache_bytes(const std::vector<LayerConfig>& layers, int64_t tokens, torch::ScalarType type);

/// The rows of one sequence in a flat batch.
struct SequenceRows {
  int64_t sequence = 0;       ///< of the cache
  int64_t tokens = 0;         ///< its rows, which follow those of the sequence before
  bool decodes = false;       ///< its only row is decoded, not part of a prompt; such sequences come first
  int64_t prompt_length = 0;  ///< length of the prompt that these rows are a chunk of; 0: it ends with them
  int64_t draw = 0;           ///< the row of random head budgets that it takes (BudgetNoise)
};

/// Positions of a sequence, copied out of a cache.
struct CachedPositions {
  int64_t length = 0;
  std::vector<KeyValues> layers;  ///< the pages that hold them, without a table; zeros after the last position
  std::vector<int64_t> words;     ///< positions in words; empty without them
};

/// A prompt that was read: tokens from position 0 on, with their keys and values.
struct CachedPrompt {
  std::vector<int32_t> tokens;
  CachedPositions positions;
};

struct KvCacheOptions {
  int64_t sequences = 1;                   ///< open from the start, numbered from 0
  int64_t positions = 0;                   ///< of each of them, for which there is room from the start
  torch::ScalarType type = torch::kFloat;  ///< int8: with a scale for each head and position; not with head budgets
  torch::Device device = torch::kCPU;
};

// P pages, G key/value heads, S positions of a page, D head width; N rows of a flat batch
class KvCache {
 public:
  static constexpr int64_t kPage = 128;  ///< positions; the size of a selector's blocks

  KvCache(const std::vector<LayerConfig>& layers, const KvCacheOptions& options);
  ~KvCache();
  KvCache(const KvCache&) = delete;
  KvCache& operator=(const KvCache&) = delete;

  static int64_t pages_for(int64_t positions) { return (positions + kPage - 1) / kPage; }

  /// Opens an empty sequence. @return  its number.
  int64_t open();
  /// Opens a sequence with the first positions of another one. Both use the same pages; one that both hold is copied
  /// when either writes to it. Not for layers with head budgets; the state of selectors is not taken over.
  /// @return  its number.
  int64_t fork(int64_t length, int64_t sequence);
  /// Closes a sequence: its number, and the pages that no other sequence uses, can be used again.
  void close(int64_t sequence);
  int64_t length(int64_t sequence = 0) const { return at(sequence).length; }
  /// Drops all positions of a sequence from `length` on. Where a layer has a head budget, 0 or at least the prompt's
  /// length, by which the budget decided.
  void truncate(int64_t length, int64_t sequence = 0);
  /// Takes pages until a sequence has room for `positions`. Where none is free, the number of pages doubles at least.
  void reserve(int64_t positions, int64_t sequence = 0);

  /// Makes the number of pages at least `count`, so that the cache does not grow until they are taken. All that is
  /// stored is kept.
  void make_room(int64_t count);

  /// Copies the first positions of a sequence. Not for layers with head budgets.
  CachedPositions copy(int64_t length, int64_t sequence = 0) const;
  /// Replaces what a sequence holds. @param positions  from a cache of the same layers and type.
  void restore(const CachedPositions& positions, int64_t sequence = 0);

  /// Begins a step, in which every layer appends the keys and values of these rows once. Takes the pages that they
  /// need, as reserve().
  void begin(const std::vector<SequenceRows>& rows);
  /// Stores the keys and values of all rows of the step. @param kv_NGD  [N, 2 G, D]: all heads' keys, then all values.
  void append(size_t layer, const torch::Tensor& kv_NGD);
  /// For a layer with a head budget, whose rows are one sequence's: stores new keys [R, G, T, D] and values of the
  /// heads that are computed (packed_heads.h), which the sequence's first keys determine. Returns all of them.
  KeyValues append_kept(size_t layer, int64_t sequence, const torch::Tensor& k_RGTD, const torch::Tensor& v_RGTD);
  /// Stores the positions in words (int64) of the step's rows.
  void append_words(const torch::Tensor& word_positions_N);
  /// Ends the step: the rows are part of their sequences.
  void end();

  /// Rows of a step that attend together: one row of each sequence that decodes, or the rows of one prompt.
  struct Group {
    int64_t first_row = 0, sequences = 1, tokens = 1;  ///< tokens: of each sequence
    SequenceRows first = {};                           ///< its first sequence
    torch::Tensor page_table_BN, kv_lengths_B;         ///< as in AttentionInput, the step's rows included
  };
  const std::vector<Group>& groups() const { return groups_; }
  /// The step's rows that are decoded.
  int64_t decoding_rows() const;
  /// The keys and values that a group of the step sees.
  KeyValues pages(size_t layer, const Group& group) const;

  /// Tokens of the word that a sequence's next token may continue; -1 while it is empty, or without positions in words.
  int64_t word_opening(int64_t sequence) const;
  /// What a layer's head budget decided for a sequence's prompt; undefined before that, and without a budget.
  HeadWeights& head_weights(size_t layer, int64_t sequence = 0) { return at(sequence).layers.at(layer).head_weights; }
  /// The state of a layer's selector for a sequence, which is truncated together with it; null until the selector sets
  /// it.
  std::unique_ptr<SelectorState>& selector_state(size_t layer, int64_t sequence = 0) {
    return at(sequence).layers.at(layer).selector_state;
  }

 private:
  struct Layer {
    int64_t heads = 0, width = 0;  ///< 0 heads: it has a budget
    KeyValues pages;               ///< without a table; in memory [G, P, page, D]
  };
  struct SequenceLayer {
    std::unique_ptr<SelectorState> selector_state;
    HeadWeights head_weights;
    torch::Tensor k_RGSD, v_RGSD;  ///< with a head budget: of the heads that are computed
  };
  struct Sequence {
    bool is_open = false;
    int64_t length = 0;
    std::vector<int32_t> pages;  ///< entry i holds positions [i kPage, (i + 1) kPage)
    std::vector<int64_t> words;  ///< positions in words
    std::vector<SequenceLayer> layers;
  };
  Sequence& at(int64_t sequence);
  const Sequence& at(int64_t sequence) const;
  /// A page that is free, for one sequence.
  int32_t take_page();
  /// Gives back the pages that hold no position below `positions`.
  void release(Sequence& sequence, int64_t positions);
  /// Copies the page with the sequence's next position if another sequence uses it too.
  void own_next_page(Sequence& sequence);
  void add_group(int64_t first_row, const std::vector<SequenceRows>& rows, size_t first, size_t end);

  std::vector<Layer> layers_;
  std::vector<Sequence> sequences_;
  std::vector<int32_t> free_;   ///< pages; the last is taken first
  std::vector<int32_t> users_;  ///< sequences that use each page
  int64_t pages_ = 0;
  torch::TensorOptions options_;
  std::vector<SequenceRows> rows_;  ///< of the step
  std::vector<Group> groups_;
  PagePlaces places_;  ///< of the step's rows
};

}  // namespace prism
