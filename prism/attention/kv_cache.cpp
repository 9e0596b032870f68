#include "prism/attention/kv_cache.h"

#include "prism/attention/huge_pages.h"
#include "prism/core/error.h"
#include "prism/sparse/selector.h"

namespace prism {

int64_t kv_cache_bytes(const std::vector<LayerConfig>& layers, int64_t tokens, int64_t element_bytes) {
  int64_t values_per_token = 0;
  for (const auto& layer : layers) values_per_token += 2 * layer.kv_heads * layer.head_dim;
  return values_per_token * tokens * element_bytes;
}

KvCache::KvCache(const std::vector<LayerConfig>& layers, int64_t batch, int64_t capacity, torch::ScalarType type,
                 const torch::Device& device)
    : capacity_(capacity), options_(torch::TensorOptions(device).dtype(type)) {
  // One allocation for all layers that store every head, so that small layers share huge pages.
  auto whole = layers;
  std::erase_if(whole, [](const LayerConfig& layer) { return layer.budget.is_on(); });
  const torch::Tensor all = make(batch * kv_cache_bytes(whole, capacity, /*element_bytes=*/1));
  int64_t used = 0;
  for (const auto& layer : layers) {
    if (layer.budget.is_on()) {
      layers_.emplace_back().has_budget = true;
      continue;
    }
    const auto take = [&] {
      const int64_t count = batch * layer.kv_heads * capacity * layer.head_dim;
      used += count;
      return all.narrow(0, used - count, count).view({batch, layer.kv_heads, capacity, layer.head_dim});
    };
    auto k = take(), v = take();
    layers_.push_back({std::move(k), std::move(v), nullptr, {}, false});
  }
}

torch::Tensor KvCache::make(int64_t values) const {
  return options_.device().is_cpu() ? empty_in_huge_pages(values, c10::typeMetaToScalarType(options_.dtype()))
                                    : torch::empty({values}, options_);
}

KvCache::~KvCache() = default;

int64_t KvCache::end_after(int64_t tokens) const {
  const int64_t end = length_ + tokens;
  PRISM_CHECK(end <= capacity_, "kv_cache",
              "expected at most {} positions; found {}; make the cache longer or the text shorter.", capacity_, end);
  return end;
}

KeyValues KvCache::append(size_t layer, const torch::Tensor& k_BGTD, const torch::Tensor& v_BGTD) {
  const int64_t tokens = k_BGTD.size(2), end = end_after(tokens);
  PRISM_ASSERT(!torch::GradMode::is_enabled() || !k_BGTD.requires_grad(), "kv_cache",
               "keys that require gradients cannot be cached");
  auto& store = layers_.at(layer);
  if (store.has_budget && length_ == 0) {
    const auto shape = [&](const torch::Tensor& x_BGTD) {
      return std::vector<int64_t>{x_BGTD.size(0), x_BGTD.size(1), capacity_, x_BGTD.size(3)};
    };
    store.k_BGSD = make(k_BGTD.numel() / tokens * capacity_).view(shape(k_BGTD));
    store.v_BGSD = make(v_BGTD.numel() / tokens * capacity_).view(shape(v_BGTD));
  }
  PRISM_ASSERT(store.k_BGSD.size(0) == k_BGTD.size(0) && store.k_BGSD.size(1) == k_BGTD.size(1), "kv_cache",
               "layer {}: {} rows of {} heads in a cache of {} rows of {}", layer, k_BGTD.size(0), k_BGTD.size(1),
               store.k_BGSD.size(0), store.k_BGSD.size(1));
  store.k_BGSD.narrow(2, length_, tokens).copy_(k_BGTD);
  store.v_BGSD.narrow(2, length_, tokens).copy_(v_BGTD);
  return {store.k_BGSD.narrow(2, 0, end), store.v_BGSD.narrow(2, 0, end), {}};
}

void KvCache::append_words(const torch::Tensor& word_positions_BT) {
  end_after(word_positions_BT.size(1));
  if (!word_positions_BS_.defined())
    word_positions_BS_ = torch::zeros({word_positions_BT.size(0), capacity_}, word_positions_BT.options());
  word_positions_BS_.narrow(1, length_, word_positions_BT.size(1)).copy_(word_positions_BT);
}

torch::Tensor KvCache::word_opening() const {
  if (length_ == 0 || !word_positions_BS_.defined()) return {};
  return word_positions_BS_.select(1, length_ - 1) + 1;
}

void KvCache::advance(int64_t tokens) {
  length_ += tokens;
}

void KvCache::truncate(int64_t length) {
  PRISM_CHECK(length >= 0 && length <= length_, "kv_cache", "expected a length up to {}; found {}; truncate to fewer.",
              length_, length);
  length_ = length;
  for (auto& layer : layers_)
    if (layer.selector_state) layer.selector_state->truncate(length);
}

void KvCache::grow(int64_t capacity) {
  PRISM_ASSERT(capacity >= capacity_, "kv_cache", "expected at least {} positions; found {}", capacity_, capacity);
  std::vector<torch::Tensor*> stored;  // a head budget has none before its first keys
  for (auto& layer : layers_)
    for (auto* values : {&layer.k_BGSD, &layer.v_BGSD})
      if (values->defined()) stored.push_back(values);
  const auto larger_count = [&](const torch::Tensor& x_BGSD) { return x_BGSD.numel() / capacity_ * capacity; };
  int64_t total = 0, used = 0;
  for (const auto* values : stored) total += larger_count(*values);
  const torch::Tensor all = make(total);
  for (auto* values : stored) {
    const int64_t count = larger_count(*values);
    auto larger_BGSD = all.narrow(0, used, count).view({values->size(0), values->size(1), capacity, values->size(3)});
    larger_BGSD.narrow(2, 0, length_).copy_(values->narrow(2, 0, length_));
    *values = larger_BGSD;
    used += count;
  }
  if (word_positions_BS_.defined()) {
    auto larger_BS = torch::zeros({word_positions_BS_.size(0), capacity}, word_positions_BS_.options());
    larger_BS.narrow(1, 0, length_).copy_(word_positions_BS_.narrow(1, 0, length_));
    word_positions_BS_ = larger_BS;
  }
  capacity_ = capacity;
}

}  // namespace prism
