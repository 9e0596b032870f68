#include "prism/sparse/methods/pooled/mean_pooling.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "prism/core/fields.h"
#include "prism/sparse/methods/pooled/pooled_selector.h"
#include "prism/sparse/option_checks.h"

namespace prism {
namespace {

class MeanPoolingSelector : public PooledSelector {
 public:
  explicit MeanPoolingSelector(const MeanPoolingOptions& options)
      : PooledSelector("mean_pooling", fields_to_json(options).dump(), options.blocks, Tail::exact,
                       {options.sink, std::max<int64_t>(options.recent, 1), options.last_dense}),
        p_(options.p) {}

 protected:
  std::vector<Band> bands(const SelectorInput& input) const override {
    Band all{"all", std::vector<int64_t>(static_cast<size_t>(input.q_BTHD.size(3)))};
    std::iota(all.features.begin(), all.features.end(), 0);
    return {all};
  }

  void choose(const PooledRow& row, const SelectorInput& input, std::span<uint8_t> kept,
              RowScratch& scratch) const override {
    keep_by_bands(row, std::array{input.score_scale()}, std::array{p_}, kept, scratch);
  }

 private:
  double p_;
};

}  // namespace

std::unique_ptr<Selector> make_mean_pooling_selector(const MeanPoolingOptions& options) {
  check_share("mean_pooling", "p", options.p);
  for (const auto& [name, count] :
       {std::pair{"sink", options.sink}, {"recent", options.recent}, {"last_dense", options.last_dense}})
    check_count("mean_pooling", name, count);
  return std::make_unique<MeanPoolingSelector>(options);
}

}  // namespace prism
