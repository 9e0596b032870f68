#include "prism/sparse/methods/oracle.h"

#include <ATen/Functions.h>

#include "prism/sparse/exact_mass.h"
#include "prism/sparse/head_by_head.h"
#include "prism/sparse/option_checks.h"
#include "prism/sparse/top_p.h"

namespace prism {
namespace {

class OracleSelector : public HeadByHeadSelector {
 public:
  explicit OracleSelector(const OracleOptions& options) : HeadByHeadSelector(options.blocks), p_(options.p) {}

 protected:
  torch::Tensor select_head(const HeadInput& head) const override {
    auto kept_MN = at::zeros({head.rows(), head.blocks()}, torch::kByte);
    for (int64_t row = 0; row < head.rows(); ++row)
      keep_top_p(exact_mass(head, row).mean(0), p_,
                 {kept_MN.mutable_data_ptr<uint8_t>() + row * head.blocks(), static_cast<size_t>(head.visible(row))});
    return kept_MN;
  }

 private:
  double p_;
};

}  // namespace

std::unique_ptr<Selector> make_oracle_selector(const OracleOptions& options) {
  check_share("oracle", "p", options.p);
  return std::make_unique<OracleSelector>(options);
}

}  // namespace prism
