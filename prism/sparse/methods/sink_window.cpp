#include "prism/sparse/methods/sink_window.h"

#include "prism/sparse/forced_blocks.h"
#include "prism/sparse/option_checks.h"
#include "prism/sparse/positional.h"

namespace prism {
std::unique_ptr<Selector> make_sink_window_selector(const SinkWindowOptions& options) {
  check_count("sink_window", "sink", options.sink);
  check_count("sink_window", "window", options.window);
  return std::make_unique<PositionalSelector>(
      options.blocks, [options](const HeadBlocks& blocks, int64_t row, std::span<uint8_t> kept) {
        keep_first(kept, options.sink);
        keep_last(kept, blocks.own_block(row), options.window);
      });
}

}  // namespace prism
