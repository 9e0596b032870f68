#include "prism/sparse/methods/spectral/spectral.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/names.h"
#include "prism/sparse/forced_blocks.h"
#include "prism/sparse/methods/spectral/pooled_tokens.h"
#include "prism/sparse/methods/spectral/spectral_rows.h"
#include "prism/sparse/option_checks.h"

namespace prism {
namespace {

const std::map<std::string, Calibration> kCalibrations = {{"off", Calibration::off},
                                                          {"all_blocks", Calibration::all_blocks},
                                                          {"causal_running", Calibration::causal_running}};
const std::map<std::string, Tail> kTails = {{"exact", Tail::exact}, {"padded", Tail::padded}};

/// Pooled queries and keys of all heads of all sequences; head h of sequence b has index b H + h.
struct SpectralState : SelectorState {
  SpectralOptions options;  ///< of the selector that made it
  std::vector<PooledTokens> queries_BH, keys_BG;

  void truncate(int64_t length) override {
    for (auto* side : {&queries_BH, &keys_BG})
      for (auto& head : *side) head.truncate(length);
  }
};

class SpectralSelector : public Selector {
 public:
  explicit SpectralSelector(const SpectralOptions& options)
      : options_(options),
        calibration_(find_by_name(kCalibrations, options.calibration, "spectral", "calibration")),
        tail_(find_by_name(kTails, options.tail, "spectral", "tail")),
        shares_{options.p_high == 0 ? options.p : options.p_high, options.p_low == 0 ? options.p : options.p_low} {
    check(options.blocks);
    for (const double share : shares_)
      PRISM_CHECK(share > 0 && share <= 1, "spectral",
                  "p, p_high, p_low: expected shares within (0, 1]; found {}; change it.", share);
    PRISM_CHECK(options.bands == "paper" || options.bands == "auto", "spectral",
                "bands: expected paper or auto; found \"{}\"; choose one of these.", options.bands);
    PRISM_CHECK(options.bands == "paper" || (options.high_dims == 0 && options.low_dims == 0), "spectral",
                "expected high_dims and low_dims only with bands=paper; found them with auto; leave one out.");
    for (const auto& [name, count] :
         {std::pair{"sink", options.sink}, {"recent", options.recent}, {"last_dense", options.last_dense}})
      check_count("spectral", name, count);
    PRISM_CHECK(
        options.recent > 0 || options.blocks.queries() <= options.blocks.keys(), "spectral",
        "recent: expected at least 1 if a row has more queries, {}, than a block has keys, {}, so that every query "
        "keeps a key that it sees; found 0; raise it.",
        options.blocks.queries(), options.blocks.keys());
  }

  std::unique_ptr<SelectorState> make_state(const SelectorInput& input) const override {
    const auto bands = options_.bands == "auto"
                           ? auto_bands(input.pairs, std::max(options_.blocks.queries(), options_.blocks.keys()))
                           : paper_bands(input.pairs, options_.high_dims, options_.low_dims);
    const int64_t batch = input.q_BTHD.size(0), width = input.q_BTHD.size(3);
    auto state = std::make_unique<SpectralState>();
    state->options = options_;
    const auto side = [&](int64_t heads, int64_t block) {
      return std::vector<PooledTokens>(static_cast<size_t>(batch * heads), PooledTokens(bands, width, block, tail_));
    };
    state->queries_BH = side(input.q_BTHD.size(2), options_.blocks.queries());
    state->keys_BG = side(input.k_BGSD.size(1), options_.blocks.keys());
    return state;
  }

  BlockMask select(const SelectorInput& input, SelectorState& kept_state) const override {
    auto& state = state_of<SpectralState>(kept_state, "spectral");
    PRISM_CHECK(equal_fields(state.options, options_), "spectral",
                "expected the state of a selector with these settings; found another selector's; make one for each "
                "selector.");
    const SelectorLengths lengths(input);
    check_readable(input);
    const int64_t batch = input.q_BTHD.size(0), heads = input.heads(), groups = input.k_BGSD.size(1);
    PRISM_CHECK(state.queries_BH.size() == static_cast<size_t>(batch * heads) &&
                    state.keys_BG.size() == static_cast<size_t>(batch * groups),
                "spectral",
                "expected as many heads as in the state, {} and {}; found {} and {}; make a state for each layer.",
                state.queries_BH.size(), state.keys_BG.size(), batch * heads, batch * groups);
    const int64_t rows = lengths.most_rows(options_.blocks.queries());
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
        const auto blocks = lengths.blocks(b, options_.blocks.queries(), options_.blocks.keys());
        auto& queries = state.queries_BH[static_cast<size_t>(i)];
        PRISM_CHECK(
            queries.length() <= blocks.first_query(), "spectral",
            "expected queries after those of earlier calls, from {} on; found them from {}; truncate the state.",
            queries.length(), blocks.first_query());
        queries.skip_to(blocks.first_query());
        queries.append(input.q_BTHD[b].select(1, i % heads).narrow(0, 0, lengths.queries(b)));
        check_finite(queries.blocks().is_finite(), "queries", i % heads, b);
        const auto& keys = state.keys_BG[static_cast<size_t>(b * groups + input.group(i % heads))];
        const int64_t dense_from = lengths.prompt_rows(b, options_.blocks.queries()) - options_.last_dense;
        select_head(blocks, queries.blocks(), keys.blocks(), dense_from, kept.data() + i * rows);
      }
    });
    return make_block_mask(kept, batch, heads, options_.blocks.queries(), options_.blocks.keys());
  }

 private:
  /// @param dense_from  first row, counted from the start of the sequence, that keeps all visible blocks.
  void select_head(const HeadBlocks& blocks, const BandedBlocks& queries, const BandedBlocks& keys, int64_t dense_from,
                   std::vector<int32_t>* kept_rows) const {
    std::vector<uint8_t> kept;
    std::vector<double> temperatures(keys.bands(), 1.0);
    RowScratch scratch;
    for (int64_t m = 0; m < blocks.rows(); ++m) {
      const int64_t row = blocks.first_row() + m, visible = blocks.visible(m);
      kept.assign(static_cast<size_t>(visible), 0);
      if (row >= dense_from) {
        std::fill(kept.begin(), kept.end(), 1);
      } else {
        const bool all = calibration_ == Calibration::all_blocks;
        if (calibration_ != Calibration::off)
          for (size_t band = 0; band < temperatures.size(); ++band)
            temperatures[band] =
                band_temperature(queries, all ? queries.blocks() : row + 1, keys, all ? keys.blocks() : visible, band);
        keep_by_bands(queries, row, keys, visible, temperatures, shares_, kept, scratch);
        // Forced blocks do not count towards the shares.
        keep_first(kept, options_.sink);
        keep_last(kept, blocks.own_block(m), options_.recent);
      }
      for (int64_t v = 0; v < visible; ++v)
        if (kept[static_cast<size_t>(v)] != 0) kept_rows[m].push_back(static_cast<int32_t>(v));
    }
  }

  SpectralOptions options_;
  Calibration calibration_;
  Tail tail_;
  std::vector<double> shares_;
};

}  // namespace

std::unique_ptr<Selector> make_spectral_selector(const SpectralOptions& options) {
  return std::make_unique<SpectralSelector>(options);
}

}  // namespace prism
