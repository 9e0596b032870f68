// The interface of selectors, which choose the key blocks that a prompt's queries attend to.
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
#include "prism/kernels/attention/block_mask.h"
#include "prism/kernels/rotary_pairs.h"

namespace prism {

/// One call's queries and all keys they may see, including those of earlier chunks; both after rotary encoding.
///
/// Query t of sequence b has key position t + kv_length - q_length, as in AttentionInput. Attention is causal.
struct SelectorInput {
  torch::Tensor q_BTHD;        ///< any strides with a dense last axis; float32 or bfloat16
  torch::Tensor k_BGSD;        ///< strides and dtypes as for q
  torch::Tensor q_lengths_B;   ///< int32; undefined: all T
  torch::Tensor kv_lengths_B;  ///< int32; undefined: all S
  RotaryPairs pairs;           ///< of the D features
  double scale = 0;            ///< of scores; 0: 1 / sqrt(D)
  int64_t prompt_length = 0;   ///< length of the prompt that this call is a chunk of; 0: it ends with this call

  int64_t heads() const { return q_BTHD.size(2); }
  /// The key/value head of a query head.
  int64_t group(int64_t head) const { return head * k_BGSD.size(1) / heads(); }
  double score_scale() const;
};

/// For methods that read values. @throws InputError unless q and k are float32 or bfloat16 on the CPU.
void check_readable(const SelectorInput& input);
/// @param what  "queries" or "keys". @throws InputError naming head and sequence unless `is_finite`.
void check_finite(bool is_finite, const char* what, int64_t head, int64_t b);

/// Blocks of one sequence's queries and keys, anchored at absolute positions. The queries are at the last positions of
/// the keys.
struct HeadBlocks {
  int64_t queries = 0, keys = 0, query_block = 0, key_block = 0;

  int64_t first_query() const { return keys - queries; }
  int64_t first_row() const { return first_query() / query_block; }
  int64_t rows() const { return queries == 0 ? 0 : (keys - 1) / query_block - first_row() + 1; }
  int64_t blocks() const { return (keys + key_block - 1) / key_block; }
  /// The row of query t.
  int64_t row_of(int64_t t) const { return (first_query() + t) / query_block - first_row(); }
  /// Positions of a row's queries: [first_position, end_position).
  int64_t first_position(int64_t row) const { return std::max((first_row() + row) * query_block, first_query()); }
  int64_t end_position(int64_t row) const { return std::min((first_row() + row + 1) * query_block, keys); }
  /// Key blocks that some query of a row sees: [0, visible).
  int64_t visible(int64_t row) const { return (end_position(row) - 1) / key_block + 1; }
  /// The key block of a row's first query.
  int64_t own_block(int64_t row) const { return (first_row() + row) * query_block / key_block; }
  /// Number of pairs of a query and a key that it sees.
  int64_t seen_pairs() const { return queries * first_query() + queries * (queries + 1) / 2; }
  /// Sum of visible() over all rows.
  int64_t visible_blocks() const;
};

/// The lengths of a batch's sequences. @throws InputError for inconsistent shapes.
class SelectorLengths {
 public:
  explicit SelectorLengths(const SelectorInput& input);
  int64_t queries(int64_t b) const { return queries_[static_cast<size_t>(b)]; }
  int64_t keys(int64_t b) const { return keys_[static_cast<size_t>(b)]; }
  HeadBlocks blocks(int64_t b, int64_t query_block, int64_t key_block) const {
    return {queries(b), keys(b), query_block, key_block};
  }
  /// Number of rows of query blocks of the whole prompt, from position 0 on.
  int64_t prompt_rows(int64_t b, int64_t query_block) const;
  /// The largest number of rows of query blocks of any sequence.
  int64_t most_rows(int64_t query_block) const;

 private:
  std::vector<int64_t> queries_, keys_;
  int64_t prompt_length_;
};

/// State that a selector keeps between chunks, for one layer's keys and values.
class SelectorState {
 public:
  virtual ~SelectorState() = default;
  /// Drops all positions from `length` on.
  virtual void truncate(int64_t length) = 0;
};

/// Casts a state to the selector's own type. @throws InputError if another selector made it.
template <class State>
State& state_of(SelectorState& state, const char* operation) {
  auto* own = dynamic_cast<State*>(&state);
  PRISM_CHECK(own != nullptr, operation,
              "expected the state that this selector made; found another selector's; make one for each selector.");
  return *own;
}

/// State of selectors that treat each chunk independently.
struct NoSelectorState : SelectorState {
  void truncate(int64_t) override {}
};

class Selector {
 public:
  virtual ~Selector() = default;
  /// Creates the state for a new prompt. @param input  the first chunk, for its shapes.
  virtual std::unique_ptr<SelectorState> make_state(const SelectorInput& input) const = 0;
  /// Selects the key blocks of each row of query blocks. Rows are anchored at absolute positions, as in BlockMask.
  /// Every query keeps at least one block that it sees. A mask without rows (not defined()) keeps all blocks.
  /// @throws InputError for inconsistent shapes or dtypes.
  virtual BlockMask select(const SelectorInput& input, SelectorState& state) const = 0;
  /// For methods that choose single keys and distances, which the mask rounds up to blocks: the share of visible
  /// query-key pairs that these cover, for each head over all sequences. Empty for other methods.
  virtual std::vector<double> unrounded_densities(const SelectorInput&) const { return {}; }
  /// One sentence for each reason why select() could not decide as requested.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace prism
