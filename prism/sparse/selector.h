// What chooses the key blocks that a prompt's queries attend to: one interface, whatever the method.
//
//   const auto selector = find_selector("spectral");
//   const auto state = selector->make_state(input);
//   attention.block_mask = selector->select(input, *state);                // again for the next chunk of the prompt
//
// B batch, T queries of this call, S keys so far, H query heads, G key/value heads, D head width
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "prism/core/error.h"
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
  int64_t prompt_length = 0;   ///< positions of the whole prompt, of which this is a chunk; 0: it ends with this call

  int64_t heads() const { return q_BTHD.size(2); }
  /// The key/value head of a query head.
  int64_t group(int64_t head) const { return head * k_BGSD.size(1) / heads(); }
  double score_scale() const;
};

/// For methods that read values. @throws InputError for other types than float32 and bfloat16, and for other devices
/// than the CPU.
void check_readable(const SelectorInput& input);
/// @param what  "queries" or "keys". @throws InputError that names head and sequence, unless `is_finite`.
void check_finite(bool is_finite, const char* what, int64_t head, int64_t b);

/// How one sequence's queries and keys fall into blocks, both anchored at absolute positions; the queries are the last
/// of the keys' positions.
struct HeadBlocks {
  int64_t queries = 0, keys = 0, query_block = 0, key_block = 0;

  int64_t first_query() const { return keys - queries; }
  int64_t first_row() const { return first_query() / query_block; }
  int64_t rows() const { return queries == 0 ? 0 : (keys - 1) / query_block - first_row() + 1; }
  int64_t blocks() const { return (keys + key_block - 1) / key_block; }
  /// The row that query t stands in.
  int64_t row_of(int64_t t) const { return (first_query() + t) / query_block - first_row(); }
  /// Positions of a row's queries: [first_position, end_position).
  int64_t first_position(int64_t row) const { return std::max((first_row() + row) * query_block, first_query()); }
  int64_t end_position(int64_t row) const { return std::min((first_row() + row + 1) * query_block, keys); }
  /// Key blocks that some query of a row sees: [0, visible).
  int64_t visible(int64_t row) const { return (end_position(row) - 1) / key_block + 1; }
  /// The key block of a row's first query.
  int64_t own_block(int64_t row) const { return (first_row() + row) * query_block / key_block; }
  /// Pairs of a query and a key that it sees.
  int64_t seen_pairs() const { return queries * first_query() + queries * (queries + 1) / 2; }
  /// Sum of visible() over all rows.
  int64_t visible_blocks() const;
};

/// The lengths of a batch's sequences. @throws InputError for shapes that contradict each other.
class SelectorLengths {
 public:
  explicit SelectorLengths(const SelectorInput& input);
  int64_t queries(int64_t b) const { return queries_[static_cast<size_t>(b)]; }
  int64_t keys(int64_t b) const { return keys_[static_cast<size_t>(b)]; }
  HeadBlocks blocks(int64_t b, int64_t query_block, int64_t key_block) const {
    return {queries(b), keys(b), query_block, key_block};
  }
  /// Rows of query blocks of the whole prompt, from position 0 on.
  int64_t prompt_rows(int64_t b, int64_t query_block) const;
  /// Rows of query blocks of the sequence that has most.
  int64_t most_rows(int64_t query_block) const;

 private:
  std::vector<int64_t> queries_, keys_;
  int64_t prompt_length_;
};

/// What a selector keeps of a layer's earlier chunks; it belongs to the layer's keys and values.
class SelectorState {
 public:
  virtual ~SelectorState() = default;
  /// Forgets all positions from `length` on.
  virtual void truncate(int64_t length) = 0;
};

/// A state as the selector that made it knows it. @throws InputError for another selector's.
template <class State>
State& state_of(SelectorState& state, const char* operation) {
  auto* own = dynamic_cast<State*>(&state);
  PRISM_CHECK(own != nullptr, operation,
              "expected the state that this selector made; found another's; make one for each selector.");
  return *own;
}

/// Of selectors that look at each chunk by itself.
struct NoSelectorState : SelectorState {
  void truncate(int64_t) override {}
};

class Selector {
 public:
  virtual ~Selector() = default;
  /// For a prompt that begins. @param input  the first chunk's, for its shapes.
  virtual std::unique_ptr<SelectorState> make_state(const SelectorInput& input) const = 0;
  /// The key blocks of each row of query blocks; rows are anchored at absolute positions, as BlockMask says. Every
  /// query keeps a block that it sees. A mask without rows (not defined()) keeps all.
  /// @throws InputError for shapes or dtypes that contradict each other.
  virtual BlockMask select(const SelectorInput& input, SelectorState& state) const = 0;
  /// Of methods that choose single keys and distances, which the mask rounds up to blocks: what share of the keys that
  /// a head's queries see these are, for each head, over all sequences. None of others.
  virtual std::vector<double> unrounded_densities(const SelectorInput&) const { return {}; }
  /// Sentences on what select() could not decide as it was asked to, one for each cause.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace prism
