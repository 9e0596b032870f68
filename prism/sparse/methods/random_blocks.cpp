#include "prism/sparse/methods/random_blocks.h"

#include "prism/core/random.h"
#include "prism/sparse/forced_blocks.h"
#include "prism/sparse/option_checks.h"
#include "prism/sparse/positional.h"

namespace prism {
std::unique_ptr<Selector> make_random_selector(const RandomBlocksOptions& options) {
  check_share("random", "share", options.share);
  check_count("random", "sink", options.sink);
  return std::make_unique<PositionalSelector>(
      options.blocks, [options](const HeadBlocks& blocks, int64_t row, std::span<uint8_t> kept) {
        Random random(static_cast<uint64_t>(options.seed), static_cast<uint64_t>(blocks.first_row() + row));
        for (uint8_t& block : kept) block = random.uniform() < options.share;
        keep_first(kept, options.sink);
      });
}

}  // namespace prism
