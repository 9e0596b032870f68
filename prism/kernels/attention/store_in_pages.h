// Writes new keys or values into the pages of a cache.
#pragma once

#include <torch/types.h>

namespace prism {

// N rows, P pages, G key/value heads, S positions of a page, D head width

/// pages[page_n, g, place_n] = rows[n, g] for every row n and head g. On the CPU this copies bytes, without the tensor
/// operations of an indexed assignment, which take longer than the copy where few rows are decoded.
///
/// @param pages_PGSD  dense.
/// @param rows_NGD    of the pages' dtype, with a dense last axis.
/// @param page_N      int64, dense, from 0 to P - 1.
/// @param place_N     int64, dense, from 0 to S - 1; no two rows have the same page and place.
void store_in_pages(const torch::Tensor& pages_PGSD, const torch::Tensor& rows_NGD, const torch::Tensor& page_N,
                    const torch::Tensor& place_N);

}  // namespace prism
