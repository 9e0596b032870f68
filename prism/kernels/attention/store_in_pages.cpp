#include "prism/kernels/attention/store_in_pages.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "prism/core/error.h"

namespace prism {
namespace {

constexpr float kLeast = 0x1p-120f;  // 127 / kLeast is finite

void check_places(const torch::Tensor& pages_PGSD, const torch::Tensor& rows_NRD, int64_t first_head,
                  const PagePlaces& places) {
  PRISM_ASSERT(first_head + pages_PGSD.size(1) <= rows_NRD.size(1) && pages_PGSD.size(3) == rows_NRD.size(2) &&
                   places.page_N.size(0) == rows_NRD.size(0) && places.place_N.size(0) == rows_NRD.size(0),
               "store_in_pages", "{} rows of {} heads of width {} do not fit the pages", rows_NRD.size(0),
               rows_NRD.size(1), rows_NRD.size(2));
  PRISM_ASSERT(!pages_PGSD.is_cpu() ||
                   (pages_PGSD.stride(3) == 1 && pages_PGSD.stride(2) == pages_PGSD.size(3) &&
                    rows_NRD.stride(2) == 1 && places.page_N.is_contiguous() && places.place_N.is_contiguous()),
               "store_in_pages", "memory that is not dense");
}

/// Calls store(page, place, n, head) for every row and head.
/// @param bytes  of a row of all heads.
template <class Store>
void for_each_row(const PagePlaces& places, int64_t heads, int64_t bytes, const Store& store) {
  constexpr int64_t kBytes = 1 << 16;  // with fewer, a second thread costs more than it saves
  const auto *page = places.page_N.const_data_ptr<int64_t>(), *place = places.place_N.const_data_ptr<int64_t>();
  at::parallel_for(0, places.page_N.size(0), std::max<int64_t>(1, kBytes / std::max<int64_t>(1, bytes)),
                   [&](int64_t first, int64_t end) {
                     for (int64_t n = first; n < end; ++n)
                       for (int64_t g = 0; g < heads; ++g) store(page[n], place[n], n, g);
                   });
}

float to_float(float x) {
  return x;
}
float to_float(c10::BFloat16 x) {
  return std::bit_cast<float>(uint32_t{x.x} << 16);
}

/// @return  the scale.
template <class From>
float quantise_row(const From* from, int64_t width, int8_t* to) {
  int32_t bits = 0;
  // As integers, so that a NaN is the largest.
  for (int64_t i = 0; i < width; ++i) bits = std::max(bits, std::bit_cast<int32_t>(to_float(from[i])) & 0x7FFFFFFF);
  const auto most = std::bit_cast<float>(bits);
  const float inverse = most >= kLeast ? 127 / most : 0;
  // The last place of the sum is 1, so adding rounds to the nearest integer, whose lowest byte is the sum's.
  constexpr float kRound = 0x1.8p+23f;
  for (int64_t i = 0; i < width; ++i)
    to[i] = static_cast<int8_t>(std::bit_cast<int32_t>(to_float(from[i]) * inverse + kRound));
  return most < kLeast ? 0 : most / 127;
}

template <class From>
void quantise_rows(const torch::Tensor& pages_PGSD, const torch::Tensor& scales_PGS, const torch::Tensor& rows_NRD,
                   int64_t first_head, const PagePlaces& places) {
  const int64_t heads = pages_PGSD.size(1), width = rows_NRD.size(2);
  const int64_t page_stride = pages_PGSD.stride(0), head_stride = pages_PGSD.stride(1);
  const int64_t scale_page_stride = scales_PGS.stride(0), scale_head_stride = scales_PGS.stride(1);
  const int64_t from_row = rows_NRD.stride(0), from_head = rows_NRD.stride(1);
  const auto* from = rows_NRD.const_data_ptr<From>() + first_head * from_head;
  auto* to = pages_PGSD.mutable_data_ptr<int8_t>();
  auto* scales = scales_PGS.mutable_data_ptr<float>();
  for_each_row(places, heads, heads * width, [&](int64_t page, int64_t place, int64_t n, int64_t g) {
    scales[page * scale_page_stride + g * scale_head_stride + place] = quantise_row(
        from + n * from_row + g * from_head, width, to + page * page_stride + g * head_stride + place * width);
  });
}

}  // namespace

void store_in_pages(const torch::Tensor& pages_PGSD, const torch::Tensor& rows_NRD, int64_t first_head,
                    const PagePlaces& places) {
  check_places(pages_PGSD, rows_NRD, first_head, places);
  PRISM_ASSERT(pages_PGSD.scalar_type() == rows_NRD.scalar_type(), "store_in_pages", "rows of another dtype");
  if (!pages_PGSD.is_cpu()) {
    pages_PGSD.transpose(1, 2).index_put_({places.page_N, places.place_N},
                                          rows_NRD.narrow(1, first_head, pages_PGSD.size(1)));
    return;
  }
  const auto element = static_cast<int64_t>(rows_NRD.element_size());
  const int64_t heads = pages_PGSD.size(1), bytes = rows_NRD.size(2) * element;
  const int64_t page_bytes = pages_PGSD.stride(0) * element, head_bytes = pages_PGSD.stride(1) * element;
  const int64_t from_row = rows_NRD.stride(0) * element, from_head = rows_NRD.stride(1) * element;
  const auto* from = static_cast<const std::byte*>(rows_NRD.const_data_ptr()) + first_head * from_head;
  auto* to = static_cast<std::byte*>(pages_PGSD.mutable_data_ptr());
  for_each_row(places, heads, heads * bytes, [&](int64_t page, int64_t place, int64_t n, int64_t g) {
    std::memcpy(to + page * page_bytes + g * head_bytes + place * bytes, from + n * from_row + g * from_head,
                static_cast<size_t>(bytes));
  });
}

void store_in_int8_pages(const torch::Tensor& pages_PGSD, const torch::Tensor& scales_PGS,
                         const torch::Tensor& rows_NRD, int64_t first_head, const PagePlaces& places) {
  check_places(pages_PGSD, rows_NRD, first_head, places);
  if (pages_PGSD.is_cpu()) {
    PRISM_ASSERT(scales_PGS.stride(2) == 1, "store_in_pages", "scales that are not dense");
    return rows_NRD.scalar_type() == torch::kBFloat16
               ? quantise_rows<c10::BFloat16>(pages_PGSD, scales_PGS, rows_NRD, first_head, places)
               : quantise_rows<float>(pages_PGSD, scales_PGS, rows_NRD.to(torch::kFloat), first_head, places);
  }
  const auto x_NGD = rows_NRD.narrow(1, first_head, pages_PGSD.size(1)).to(torch::kFloat),
             most_NG = x_NGD.abs().amax(-1);
  const auto is_zero_NG = most_NG < kLeast;
  const auto inverse_NG = (127 / most_NG).masked_fill(is_zero_NG, 0);
  store_in_pages(pages_PGSD, (x_NGD * inverse_NG.unsqueeze(-1)).round().nan_to_num(0).to(torch::kChar), 0, places);
  store_in_pages(scales_PGS.unsqueeze(3), (most_NG / 127).masked_fill(is_zero_NG, 0).unsqueeze(2), 0, places);
}

}  // namespace prism
