#include "prism/sparse/methods/vertical_slash.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <limits>

#include "prism/core/error.h"
#include "prism/sparse/methods/last_queries.h"
#include "prism/sparse/option_checks.h"

namespace prism {
namespace {

constexpr int64_t kLastQueries = 64, kFirstColumns = 30, kFirstDistances = 100, kFewestDistances = 50;

/// The indices of `count` entries, ascending: the first `preferred`, then the largest.
std::vector<int64_t> largest(const torch::Tensor& values_S, int64_t count, int64_t preferred) {
  auto values = values_S.clone();
  values.slice(0, 0, preferred).fill_(std::numeric_limits<float>::infinity());
  const auto order = values.argsort(/*stable=*/true, /*dim=*/0, /*descending=*/true);
  const auto chosen = order.slice(0, 0, count).contiguous();
  std::vector<int64_t> found(chosen.const_data_ptr<int64_t>(), chosen.const_data_ptr<int64_t>() + chosen.numel());
  std::sort(found.begin(), found.end());
  return found;
}

class VerticalSlashSelector : public HeadByHeadSelector {
 public:
  explicit VerticalSlashSelector(const VerticalSlashOptions& options)
      : HeadByHeadSelector(options.blocks), options_(options) {
    for (const auto& [name, count] : {std::pair{"vertical", options.vertical}, {"slash", options.slash}})
      check_count("vertical_slash", name, count);
  }

  std::vector<double> unrounded_densities(const SelectorInput& input) const override {
    const SelectorLengths lengths(input);
    std::vector<double> densities;
    for (int64_t h = 0; h < input.heads(); ++h) {
      double held = 0, seen = 0;
      for (int64_t b = 0; b < input.q_BTHD.size(0); ++b) {
        if (lengths.queries(b) == 0) continue;
        const auto head = head_input(input, lengths, b, h, options_.blocks.queries(), options_.blocks.keys());
        held += static_cast<double>(held_pairs(head, choose_vertical_slash(head, options_)));
        seen += static_cast<double>(head.seen_pairs());
      }
      densities.push_back(seen == 0 ? 1 : held / seen);
    }
    return densities;
  }

 protected:
  torch::Tensor select_head(const HeadInput& head) const override {
    const auto [columns, distances] = choose_vertical_slash(head, options_);
    auto kept_MN = at::zeros({head.rows(), head.blocks()}, torch::kBool);
    for (const int64_t column : columns) kept_MN.select(1, column / head.key_block).fill_(true);
    for (size_t i = 0; i < distances.size();) {
      const size_t first = i++;
      while (i < distances.size() && distances[i] == distances[i - 1] + 1) ++i;
      keep_distances(head, {distances[first], distances[i - 1] + 1}, kept_MN);
    }
    return kept_MN;
  }

 private:
  VerticalSlashOptions options_;
};

}  // namespace

int64_t held_pairs(const HeadBlocks& head, const VerticalSlash& pattern) {
  const auto& [columns, distances] = pattern;
  int64_t pairs = 0;
  for (const auto* list : {&columns, &distances})
    for (const int64_t place : *list) pairs += head.keys - std::max(place, head.first_query());
  // A pair that both a column and a distance cover, at query column + distance, was counted twice.
  for (const int64_t column : columns) {
    const auto first = std::lower_bound(distances.begin(), distances.end(), head.first_query() - column);
    pairs -= std::lower_bound(first, distances.end(), head.keys - column) - first;
  }
  return pairs;
}

VerticalSlash choose_vertical_slash(const HeadInput& head, const VerticalSlashOptions& options) {
  const auto last = attend_with_last(head, kLastQueries);
  return {largest(last.vertical_S, std::max(options.vertical, kFirstColumns), kFirstColumns),
          largest(last.slash_S, std::max(options.slash, kFewestDistances), kFirstDistances)};
}

std::unique_ptr<Selector> make_vertical_slash_selector(const VerticalSlashOptions& options) {
  return std::make_unique<VerticalSlashSelector>(options);
}

}  // namespace prism
