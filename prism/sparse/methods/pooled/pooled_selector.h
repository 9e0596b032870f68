// Base class of selectors that choose key blocks by the means of a row's queries and of each block's keys.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/forced_blocks.h"
#include "prism/sparse/methods/pooled/bands.h"
#include "prism/sparse/methods/pooled/keep_by_bands.h"
#include "prism/sparse/methods/pooled/pooled_tokens.h"
#include "prism/sparse/selector.h"

namespace prism {

/// Averages each token once, when it comes: means are kept in the state.
class PooledSelector : public Selector {
 public:
  std::unique_ptr<SelectorState> make_state(const SelectorInput& input) const final;
  BlockMask select(const SelectorInput& input, SelectorState& state) const final;

 protected:
  /// @param name      for messages.
  /// @param settings  identify the selector: a state that one with others made is refused.
  /// @throws InputError for invalid block sizes.
  PooledSelector(const char* name, std::string settings, const BlockSizes& blocks, Tail tail,
                 const ForcedBlocks& forced);

  /// The features that blocks are compared by.
  virtual std::vector<Band> bands(const SelectorInput& input) const = 0;
  /// Sets the entries of the chosen blocks of `kept`, [visible], to 1. Called from several threads.
  virtual void choose(const PooledRow& row, const SelectorInput& input, std::span<uint8_t> kept,
                      RowScratch& scratch) const = 0;

 private:
  /// @param dense_from  first row, from position 0 on, that keeps all visible blocks.
  void select_head(const SelectorInput& input, const HeadBlocks& blocks, const BandedBlocks& queries,
                   const BandedBlocks& keys, int64_t dense_from, std::vector<int32_t>* kept_rows) const;

  const char* name_;
  std::string settings_;
  BlockSizes blocks_;
  Tail tail_;
  ForcedBlocks forced_;
};

}  // namespace prism
