#include "prism/sparse/methods/pooled/pooled_selector.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

/// Pooled queries and keys of all heads of all sequences; head h of sequence b has index b H + h.
struct PooledState : SelectorState {
  std::string settings;  ///< of the selector that made it
  std::vector<PooledTokens> queries_BH, keys_BG;

  void truncate(int64_t length) override {
    for (auto* side : {&queries_BH, &keys_BG})
      for (auto& head : *side) head.truncate(length);
  }
};

}  // namespace

PooledSelector::PooledSelector(const char* name, std::string settings, const BlockSizes& blocks, Tail tail,
                               const ForcedBlocks& forced)
    : name_(name), settings_(std::move(settings)), blocks_(blocks), tail_(tail), forced_(forced) {
  check(blocks);
}

std::unique_ptr<SelectorState> PooledSelector::make_state(const SelectorInput& input) const {
  const auto features = bands(input);
  const int64_t batch = input.q_BTHD.size(0), width = input.q_BTHD.size(3);
  const auto side = [&](int64_t heads, int64_t block) {
    return std::vector<PooledTokens>(static_cast<size_t>(batch * heads), PooledTokens(features, width, block, tail_));
  };
  auto state = std::make_unique<PooledState>();
  state->settings = settings_;
  state->queries_BH = side(input.q_BTHD.size(2), blocks_.queries());
  state->keys_BG = side(input.k_BGSD.size(1), blocks_.keys());
  return state;
}

BlockMask PooledSelector::select(const SelectorInput& input, SelectorState& kept_state) const {
  auto& state = state_of<PooledState>(kept_state, name_);
  PRISM_CHECK(state.settings == settings_, name_,
              "expected the state of a selector with these settings; found another selector's; make one for each "
              "selector.");
  const SelectorLengths lengths(input);
  check_readable(input);
  const int64_t batch = input.q_BTHD.size(0), heads = input.heads(), groups = input.k_BGSD.size(1);
  PRISM_CHECK(state.queries_BH.size() == static_cast<size_t>(batch * heads) &&
                  state.keys_BG.size() == static_cast<size_t>(batch * groups),
              name_, "expected as many heads as in the state, {} and {}; found {} and {}; make a state for each layer.",
              state.queries_BH.size(), state.keys_BG.size(), batch * heads, batch * groups);
  const int64_t rows = lengths.most_rows(blocks_.queries());
  at::parallel_for(0, batch * groups, 1, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      auto& keys = state.keys_BG[static_cast<size_t>(i)];
      const int64_t known = keys.length(), count = lengths.keys(i / groups);
      if (count > known) keys.append(input.k_BGSD[i / groups][i % groups].narrow(0, known, count - known));
      check_finite(keys.blocks().is_finite(), "keys", i % groups, i / groups);
    }
  });
  std::vector<std::vector<int32_t>> kept(static_cast<size_t>(batch * heads * rows));
  at::parallel_for(0, batch * heads, 1, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const int64_t b = i / heads;
      const auto blocks = lengths.blocks(b, blocks_.queries(), blocks_.keys());
      auto& queries = state.queries_BH[static_cast<size_t>(i)];
      PRISM_CHECK(queries.length() <= blocks.first_query(), name_,
                  "expected queries after those of earlier calls, from {} on; found them from {}; truncate the state.",
                  queries.length(), blocks.first_query());
      queries.skip_to(blocks.first_query());
      queries.append(input.q_BTHD[b].select(1, i % heads).narrow(0, 0, lengths.queries(b)));
      check_finite(queries.blocks().is_finite(), "queries", i % heads, b);
      const auto& keys = state.keys_BG[static_cast<size_t>(b * groups + input.group(i % heads))];
      const int64_t dense_from = first_dense_row(lengths.prompt_rows(b, blocks_.queries()), forced_.last_dense);
      select_head(input, blocks, queries.blocks(), keys.blocks(), dense_from, kept.data() + i * rows);
    }
  });
  return make_block_mask(kept, batch, heads, blocks_.queries(), blocks_.keys());
}

void PooledSelector::select_head(const SelectorInput& input, const HeadBlocks& blocks, const BandedBlocks& queries,
                                 const BandedBlocks& keys, int64_t dense_from, std::vector<int32_t>* kept_rows) const {
  std::vector<uint8_t> kept;
  RowScratch scratch;
  for (int64_t m = 0; m < blocks.rows(); ++m) {
    const int64_t row = blocks.first_row() + m, visible = blocks.visible(m);
    kept.assign(static_cast<size_t>(visible), row >= dense_from ? 1 : 0);
    if (row < dense_from) {
      choose({queries, row, keys, visible}, input, kept, scratch);
      keep_first(kept, forced_.sink);
      keep_last(kept, blocks.own_block(m), forced_.recent);
    }
    append_kept(kept, kept_rows[m]);
  }
}

}  // namespace prism
