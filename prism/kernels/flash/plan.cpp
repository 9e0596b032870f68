#include <algorithm>
#include <numeric>

#include "prism/kernels/flash/flash.h"

namespace prism::flash {
namespace {

/// The end of the task that starts at row `first`. Blocks of queries are split into tasks of about equal size.
int64_t end_of_rows(const Problem& p, int64_t batch, int64_t first) {
  if (!p.blocks.defined()) return std::min(p.queries, first + kTaskRows);
  const int64_t size = p.blocks.query_block, in_block = (p.blocks.first_query_B[batch] + first) % size;
  const int64_t left = std::min(p.queries - first, size - in_block);
  const int64_t parts = (left + kTaskRows - 1) / kTaskRows;
  return first + (left + parts - 1) / parts;
}

/// Upper bound on the number of scores that a task computes.
int64_t work_of(const Problem& p, const Task& task, int64_t seen) {
  if (!p.blocks.defined() || seen == 0) return seen;
  const int64_t row = (task.batch * p.heads + task.head) * p.blocks.rows + p.blocks.row_of(task.batch, task.first);
  return std::min(seen, (task.end - task.first) * p.blocks.counts_BHM[row] * p.blocks.key_block);
}

}  // namespace

bool decodes(const Problem& p) {
  constexpr int64_t kMostQueries = 8, kMostRows = 32;
  if (p.blocks.defined()) return false;
  if (p.decodes) return *p.decodes;
  return p.queries <= kMostQueries && p.queries * (p.heads / p.kv_heads) <= kMostRows;
}

std::vector<Task> plan(const Problem& p) {
  if (decodes(p)) return {};
  struct Weighed {
    Task task;
    int64_t work;
  };
  std::vector<Weighed> weighed;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t first = 0, end = 0; first < p.queries; first = end) {
      end = end_of_rows(p, b, first);
      int64_t seen = 0;
      for (int64_t t = b * p.queries + first; t < b * p.queries + end; ++t)
        seen += std::max(0, p.end_key_BT[t] - p.first_key_BT[t]);
      for (int64_t head = 0; head < p.heads; ++head) {
        const Task task{b, head, first, end};
        weighed.push_back({task, work_of(p, task, seen)});
      }
    }
  }
  std::stable_sort(weighed.begin(), weighed.end(), [](const Weighed& a, const Weighed& b) { return a.work > b.work; });
  std::vector<Task> tasks;
  tasks.reserve(weighed.size());
  for (const Weighed& each : weighed) tasks.push_back(each.task);
  return tasks;
}

}  // namespace prism::flash
