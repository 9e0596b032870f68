#include "prism/sparse/row_by_row.h"

#include <ATen/Functions.h>

namespace prism {

torch::Tensor RowByRowSelector::select_head(const HeadInput& head) const {
  auto kept_MN = at::zeros({head.rows(), head.blocks()}, torch::kByte);
  for (int64_t row = 0; row < head.rows(); ++row)
    keep_(head, row,
          {kept_MN.mutable_data_ptr<uint8_t>() + row * head.blocks(), static_cast<size_t>(head.visible(row))});
  return kept_MN;
}

}  // namespace prism
