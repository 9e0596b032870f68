// Writes new keys or values into the pages of a cache.
#pragma once

#include <torch/types.h>

namespace prism {

// N rows of R heads, P pages, G key/value heads, S positions of a page, D head width

/// Where rows go: row n to position place[n] of page page[n]. No two rows have the same page and place.
struct PagePlaces {
  torch::Tensor page_N;   ///< int64, dense, from 0 to P - 1
  torch::Tensor place_N;  ///< int64, dense, from 0 to S - 1
};

/// pages[page_n, g, place_n] = rows[n, first_head + g] for every row n and head g. On the CPU this copies bytes,
/// without the tensor operations of an indexed assignment, which take longer than the copy where few rows are decoded.
///
/// @param pages_PGSD  with dense positions: the last strides are D and 1.
/// @param rows_NRD    of the pages' dtype, with a dense last axis.
void store_in_pages(const torch::Tensor& pages_PGSD, const torch::Tensor& rows_NRD, int64_t first_head,
                    const PagePlaces& places);

/// The same for pages of int8, which hold x as round(x / scale), ties to even. The scale of a row is max |x| / 127. It
/// is 0, as are the row's values, if max |x| is below 2^-120, and NaN for a row that holds a NaN.
///
/// @param scales_PGS  float32, with a dense last axis.
/// @param rows_NRD    of any floating-point dtype, with a dense last axis.
void store_in_int8_pages(const torch::Tensor& pages_PGSD, const torch::Tensor& scales_PGS,
                         const torch::Tensor& rows_NRD, int64_t first_head, const PagePlaces& places);

}  // namespace prism
