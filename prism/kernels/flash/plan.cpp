#include <algorithm>
#include <numeric>

#include "prism/kernels/flash/flash.h"

namespace prism::flash {
std::vector<Task> plan(const Problem& p) {
  struct Block {
    int64_t batch, first, end, work;
  };
  std::vector<Block> blocks;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t first = 0; first < p.queries; first += kTaskRows) {
      Block block{b, first, std::min(p.queries, first + kTaskRows), 0};
      for (int64_t t = b * p.queries + first; t < b * p.queries + block.end; ++t)
        block.work += std::max(0, p.end_key_BT[t] - p.first_key_BT[t]);
      blocks.push_back(block);
    }
  }
  std::stable_sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.work > b.work; });
  std::vector<Task> tasks;
  tasks.reserve(blocks.size() * static_cast<size_t>(p.heads));
  for (const Block& block : blocks)
    for (int64_t head = 0; head < p.heads; ++head) tasks.push_back({block.batch, head, block.first, block.end});
  return tasks;
}

}  // namespace prism::flash
