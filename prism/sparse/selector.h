// What chooses the key blocks that a prompt's queries attend to: one interface, whatever the method.
//
//   const auto selector = find_selector("spectral");
//   const auto state = selector->make_state(input);
//   attention.block_mask = selector->select(input, *state);                // again for the next chunk of the prompt
//
// B batch, T queries of this call, S keys so far, H query heads, G key/value heads, D head width
#pragma once

#include <memory>
#include <vector>

#include "prism/kernels/block_mask.h"
#include "prism/sparse/rotary_pairs.h"

namespace prism {

/// One call's queries with all keys that they may see, those of earlier chunks included; both after rotary.
///
/// Query t of sequence b stands at key position t + kv_length - q_length, as in AttentionInput. Attention is causal.
struct SelectorInput {
  torch::Tensor q_BTHD;        ///< any strides with a dense last axis; float32 or bfloat16
  torch::Tensor k_BGSD;        ///< likewise
  torch::Tensor q_lengths_B;   ///< int32; undefined: all T
  torch::Tensor kv_lengths_B;  ///< int32; undefined: all S
  RotaryPairs pairs;           ///< of the D features
  double scale = 0;            ///< of scores; 0: 1 / sqrt(D)
};

/// The lengths of a batch's sequences. @throws InputError for shapes or dtypes that contradict each other.
class SelectorLengths {
 public:
  explicit SelectorLengths(const SelectorInput& input);
  int64_t queries(int64_t b) const { return queries_[static_cast<size_t>(b)]; }
  int64_t keys(int64_t b) const { return keys_[static_cast<size_t>(b)]; }
  int64_t first_query(int64_t b) const { return keys(b) - queries(b); }
  /// Blocks of queries that the sequence's queries stand in.
  int64_t rows(int64_t b, int64_t query_block) const;
  /// Of the sequence that has most.
  int64_t most_rows(int64_t query_block) const;

 private:
  std::vector<int64_t> queries_, keys_;
};

/// What a selector keeps of a layer's earlier chunks; it belongs to the layer's keys and values.
class SelectorState {
 public:
  virtual ~SelectorState() = default;
  /// Forgets all positions from `length` on.
  virtual void truncate(int64_t length) = 0;
};

class Selector {
 public:
  virtual ~Selector() = default;
  /// For a prompt that begins. @param input  the first chunk's, for its shapes.
  virtual std::unique_ptr<SelectorState> make_state(const SelectorInput& input) const = 0;
  /// The key blocks of each row of query blocks; rows are anchored at absolute positions, as BlockMask says. Every
  /// query keeps a block that it sees.
  /// @throws InputError for shapes or dtypes that contradict each other.
  virtual BlockMask select(const SelectorInput& input, SelectorState& state) const = 0;
};

}  // namespace prism
