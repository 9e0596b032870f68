#include "prism/sparse/methods/pooled/pooled_tokens.h"

#include <algorithm>
#include <type_traits>

#include "prism/core/error.h"
#include "prism/kernels/rows/rows.h"

namespace prism {

PooledTokens::PooledTokens(const std::vector<Band>& bands, int64_t head_dim, int64_t block_size, Tail tail)
    : blocks_(bands, head_dim), block_size_(block_size), tail_(tail), sum_(static_cast<size_t>(head_dim)) {}

void PooledTokens::append(const torch::Tensor& rows_TD) {
  const int64_t count = rows_TD.size(0);
  if (count == 0) return;
  open_block();
  if (rows_TD.scalar_type() == torch::kFloat)
    add_rows(rows_TD.const_data_ptr<float>(), rows_TD.stride(0), count);
  else
    add_rows(rows_TD.const_data_ptr<c10::BFloat16>(), rows_TD.stride(0), count);
  if (length_ % block_size_ != 0) close_block();
}

void PooledTokens::skip_to(int64_t position) {
  if (position <= length_) return;
  open_block();
  while (length_ < position) {
    const int64_t next = std::min(position, (length_ / block_size_ + 1) * block_size_);
    length_ = next;
    if (length_ % block_size_ == 0) close_block();
  }
}

void PooledTokens::truncate(int64_t length) {
  if (length >= length_) return;
  open_block();
  known_ = 0;
  std::fill(sum_.begin(), sum_.end(), 0.0f);
  length_ = length / block_size_ * block_size_;
  while (blocks_.blocks() > length_ / block_size_) blocks_.pop();
}

template <class Element>
void PooledTokens::add_rows(const Element* rows, int64_t stride, int64_t count) {
  const auto* kernels = rows::kernels_of(current_isa());
  const auto type = std::is_same_v<Element, float> ? rows::Type::float32 : rows::Type::bfloat16;
  for (int64_t first = 0, end = 0; first < count; first = end) {
    end = std::min(count, first + block_size_ - length_ % block_size_);
    if (kernels != nullptr) {
      kernels->add({type, static_cast<int64_t>(sum_.size()), stride, rows, sum_.data()}, first, end);
    } else {
      for (int64_t t = first; t < end; ++t)
        for (size_t i = 0; i < sum_.size(); ++i)
          sum_[i] += static_cast<float>(rows[t * stride + static_cast<int64_t>(i)]);
    }
    known_ += end - first;
    length_ += end - first;
    if (length_ % block_size_ == 0) close_block();
  }
}

/// Removes the partial block from blocks_, so that tokens can be added to it.
void PooledTokens::open_block() {
  if (is_growing_) blocks_.pop();
  is_growing_ = false;
}

/// Appends the mean of the block that contains or ends at length_.
void PooledTokens::close_block() {
  const bool is_whole = length_ % block_size_ == 0;
  const int64_t count = tail_ == Tail::padded ? block_size_ : std::max<int64_t>(1, known_);
  std::vector<float> mean(sum_);
  for (float& x : mean) x /= static_cast<float>(count);
  blocks_.append(mean.data());
  is_growing_ = !is_whole;
  if (!is_whole) return;
  known_ = 0;
  std::fill(sum_.begin(), sum_.end(), 0.0f);
}

}  // namespace prism
