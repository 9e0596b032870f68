#include "prism/sparse/methods/pooled/spectral.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/names.h"
#include "prism/sparse/methods/pooled/pooled_selector.h"
#include "prism/sparse/option_checks.h"

namespace prism {
namespace {

/// The blocks whose energies set each band's temperature.
enum class Calibration {
  off,             ///< none: the temperature is 1
  all_blocks,      ///< all blocks, as in the reference: a row then depends on later blocks and on how a prompt is cut
  causal_running,  ///< blocks up to the row: the same however a prompt is cut into chunks of whole blocks
};

const std::map<std::string, Calibration> kCalibrations = {{"off", Calibration::off},
                                                          {"all_blocks", Calibration::all_blocks},
                                                          {"causal_running", Calibration::causal_running}};
const std::map<std::string, Tail> kTails = {{"exact", Tail::exact}, {"padded", Tail::padded}};

class SpectralSelector : public PooledSelector {
 public:
  explicit SpectralSelector(const SpectralOptions& options)
      : PooledSelector("spectral", fields_to_json(options).dump(), options.blocks,
                       find_by_name(kTails, options.tail, "spectral", "tail"),
                       {options.sink, options.recent, options.last_dense}),
        options_(options),
        calibration_(find_by_name(kCalibrations, options.calibration, "spectral", "calibration")),
        shares_{options.p_high == 0 ? options.p : options.p_high, options.p_low == 0 ? options.p : options.p_low} {
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

 protected:
  std::vector<Band> bands(const SelectorInput& input) const override {
    return options_.bands == "auto"
               ? auto_bands(input.pairs, std::max(options_.blocks.queries(), options_.blocks.keys()))
               : paper_bands(input.pairs, options_.high_dims, options_.low_dims);
  }

  void choose(const PooledRow& row, const SelectorInput&, std::span<uint8_t> kept, RowScratch& scratch) const override {
    const bool all = calibration_ == Calibration::all_blocks;
    const int64_t query_blocks = all ? row.queries.blocks() : row.row + 1;
    const int64_t key_blocks = all ? row.keys.blocks() : row.visible;
    std::array<double, 2> scales{};
    for (size_t band = 0; band < scales.size(); ++band) {
      const double tau = calibration_ == Calibration::off
                             ? 1
                             : band_temperature(row.queries, query_blocks, row.keys, key_blocks, band);
      // A band without energy has uniform scores at any temperature.
      scales[band] = 1 / (std::sqrt(static_cast<double>(row.keys.band_width(band))) * (tau == 0 ? 1 : tau));
    }
    keep_by_bands(row, scales, shares_, kept, scratch);
  }

 private:
  SpectralOptions options_;
  Calibration calibration_;
  std::array<double, 2> shares_;
};

}  // namespace

double band_temperature(const BandedBlocks& queries, int64_t query_blocks, const BandedBlocks& keys, int64_t key_blocks,
                        size_t band) {
  constexpr double kLeast = 1e-6;
  const double share = static_cast<double>(keys.band_width(band)) / static_cast<double>(keys.head_dim());
  return std::sqrt(share) * (queries.rms(band, query_blocks) / std::max(queries.rms(query_blocks), kLeast)) *
         (keys.rms(band, key_blocks) / std::max(keys.rms(key_blocks), kLeast));
}

std::unique_ptr<Selector> make_spectral_selector(const SpectralOptions& options) {
  return std::make_unique<SpectralSelector>(options);
}

}  // namespace prism
