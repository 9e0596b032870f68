#include "prism/kernels/attention/store_in_pages.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "prism/core/error.h"

namespace prism {

void store_in_pages(const torch::Tensor& pages_PGSD, const torch::Tensor& rows_NGD, const torch::Tensor& page_N,
                    const torch::Tensor& place_N) {
  const int64_t rows = rows_NGD.size(0), heads = rows_NGD.size(1), width = rows_NGD.size(2);
  PRISM_ASSERT(pages_PGSD.size(1) == heads && pages_PGSD.size(3) == width && page_N.size(0) == rows &&
                   place_N.size(0) == rows && pages_PGSD.scalar_type() == rows_NGD.scalar_type(),
               "store_in_pages", "{} rows of {} heads of width {} do not fit the pages", rows, heads, width);
  if (!pages_PGSD.is_cpu()) {
    pages_PGSD.transpose(1, 2).index_put_({page_N, place_N}, rows_NGD);
    return;
  }
  PRISM_ASSERT(
      pages_PGSD.is_contiguous() && rows_NGD.stride(2) == 1 && page_N.is_contiguous() && place_N.is_contiguous(),
      "store_in_pages", "memory that is not dense");
  const auto element = static_cast<int64_t>(rows_NGD.element_size());
  const int64_t places = pages_PGSD.size(2), row_bytes = rows_NGD.stride(0) * element;
  const int64_t head_bytes = rows_NGD.stride(1) * element, bytes = width * element;
  const auto* from = static_cast<const std::byte*>(rows_NGD.const_data_ptr());
  auto* to = static_cast<std::byte*>(pages_PGSD.mutable_data_ptr());
  const auto *page = page_N.const_data_ptr<int64_t>(), *place = place_N.const_data_ptr<int64_t>();
  constexpr int64_t kBytes = 1 << 16;  // with fewer, a second thread costs more than it saves
  at::parallel_for(0, rows, std::max<int64_t>(1, kBytes / std::max<int64_t>(1, heads * bytes)),
                   [&](int64_t first, int64_t end) {
                     for (int64_t n = first; n < end; ++n)
                       for (int64_t g = 0; g < heads; ++g)
                         std::memcpy(to + ((page[n] * heads + g) * places + place[n]) * bytes,
                                     from + n * row_bytes + g * head_bytes, static_cast<size_t>(bytes));
                   });
}

}  // namespace prism
