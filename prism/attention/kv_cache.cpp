#include "prism/attention/kv_cache.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "prism/core/error.h"
#include "prism/kernels/attention/store_in_pages.h"
#include "prism/kernels/memory/huge_pages.h"
#include "prism/sparse/selector.h"

namespace prism {
namespace {

/// The tensors of some pages: keys, values and, of int8 pages, their scales.
std::vector<torch::Tensor*> tensors_of(KeyValues& pages) {
  if (pages.is_int8()) return {&pages.k_BGSD, &pages.v_BGSE, &pages.k_scales_PGS, &pages.v_scales_PGS};
  return {&pages.k_BGSD, &pages.v_BGSE};
}

}  // namespace

int64_t kv_cache_bytes(const std::vector<LayerConfig>& layers, int64_t tokens, torch::ScalarType type) {
  const auto value = static_cast<int64_t>(c10::elementSize(type));
  const int64_t scale = type == torch::kChar ? static_cast<int64_t>(sizeof(float)) : 0;
  int64_t bytes = 0;
  for (const auto& layer : layers) bytes += 2 * layer.kv_heads * (layer.head_dim * value + scale);
  return bytes * tokens;
}

KvCache::KvCache(const std::vector<LayerConfig>& layers, const KvCacheOptions& options)
    : options_(torch::TensorOptions(options.device).dtype(options.type)) {
  for (const auto& layer : layers) {
    PRISM_CHECK(!layer.budget.is_on() || options.type != torch::kChar, "kv_cache",
                "expected a cache in the dtype of products for a model with head budgets; found int8; leave out "
                "--cache-type.");
    layers_.push_back({layer.budget.is_on() ? 0 : layer.kv_heads, layer.head_dim, {}});
  }
  for (int64_t i = 0; i < options.sequences; ++i) open();
  make_room(options.sequences * pages_for(options.positions));
}

KvCache::~KvCache() = default;

KvCache::Sequence& KvCache::at(int64_t sequence) {
  return const_cast<Sequence&>(std::as_const(*this).at(sequence));
}

const KvCache::Sequence& KvCache::at(int64_t sequence) const {
  PRISM_ASSERT(sequence >= 0 && sequence < std::ssize(sequences_) && sequences_[static_cast<size_t>(sequence)].is_open,
               "kv_cache", "sequence {} of {}", sequence, sequences_.size());
  return sequences_[static_cast<size_t>(sequence)];
}

int64_t KvCache::open() {
  auto found = std::find_if(sequences_.begin(), sequences_.end(), [](const Sequence& each) { return !each.is_open; });
  if (found == sequences_.end()) found = sequences_.emplace(sequences_.end());
  found->is_open = true;
  found->layers.resize(layers_.size());
  return found - sequences_.begin();
}

int64_t KvCache::fork(int64_t length, int64_t sequence) {
  const int64_t number = open();
  auto& forked = at(number);
  const auto& from = at(sequence);
  PRISM_ASSERT(length <= from.length, "kv_cache", "{} of {} positions", length, from.length);
  for (const auto& layer : layers_) PRISM_ASSERT(layer.heads > 0, "kv_cache", "a fork of a layer with a head budget");
  forked.length = length;
  forked.pages.assign(from.pages.begin(), from.pages.begin() + static_cast<std::ptrdiff_t>(pages_for(length)));
  for (const auto page : forked.pages) ++users_[static_cast<size_t>(page)];
  if (!from.words.empty())
    forked.words.assign(from.words.begin(), from.words.begin() + static_cast<std::ptrdiff_t>(length));
  return number;
}

void KvCache::close(int64_t sequence) {
  auto& closed = at(sequence);
  release(closed, 0);
  closed = {};
}

void KvCache::truncate(int64_t length, int64_t sequence) {
  auto& shorter = at(sequence);
  PRISM_CHECK(length >= 0 && length <= shorter.length, "kv_cache",
              "expected a length up to {}; found {}; truncate to fewer.", shorter.length, length);
  shorter.length = length;
  if (!shorter.words.empty()) shorter.words.resize(static_cast<size_t>(length));
  release(shorter, length);
  for (auto& layer : shorter.layers)
    if (layer.selector_state) layer.selector_state->truncate(length);
}

void KvCache::reserve(int64_t positions, int64_t sequence) {
  auto& pages = at(sequence).pages;
  const int64_t missing = pages_for(positions) - std::ssize(pages);
  if (missing > std::ssize(free_)) make_room(std::max(2 * pages_, pages_ + missing - std::ssize(free_)));
  for (int64_t i = 0; i < missing; ++i) pages.push_back(take_page());
}

int32_t KvCache::take_page() {
  if (free_.empty()) make_room(std::max<int64_t>(1, 2 * pages_));
  const int32_t page = free_.back();
  free_.pop_back();
  users_[static_cast<size_t>(page)] = 1;
  return page;
}

void KvCache::release(Sequence& sequence, int64_t positions) {
  for (; std::ssize(sequence.pages) > pages_for(positions); sequence.pages.pop_back()) {
    const int32_t page = sequence.pages.back();
    if (--users_[static_cast<size_t>(page)] == 0) free_.push_back(page);
  }
}

void KvCache::own_next_page(Sequence& sequence) {
  const auto next = static_cast<size_t>(sequence.length / kPage);
  if (next >= sequence.pages.size() || users_[static_cast<size_t>(sequence.pages[next])] == 1) return;
  const int32_t shared = sequence.pages[next], own = take_page();
  for (auto& layer : layers_)
    for (auto* tensor : tensors_of(layer.pages)) tensor->select(0, own).copy_(tensor->select(0, shared));
  --users_[static_cast<size_t>(shared)];
  sequence.pages[next] = own;
}

void KvCache::make_room(int64_t count) {
  if (count <= pages_) return;
  int64_t total = 0, used = 0;
  for (const auto& layer : layers_) total += 2 * count * layer.heads * kPage * layer.width;
  // One allocation for all layers, so that small layers share huge pages. The pages of a head follow each other in
  // memory, because attention reads them head by head.
  const auto all = options_.device().is_cpu() ? empty_in_huge_pages(total, c10::typeMetaToScalarType(options_.dtype()))
                                              : torch::empty({total}, options_);
  for (auto& layer : layers_) {
    KeyValues larger;
    for (auto* pages : {&larger.k_BGSD, &larger.v_BGSE}) {
      const int64_t values = count * layer.heads * kPage * layer.width;
      *pages = all.narrow(0, used, values).view({layer.heads, count, kPage, layer.width}).transpose(0, 1);
      used += values;
    }
    if (options_.dtype() == torch::kChar)
      for (auto* scales : {&larger.k_scales_PGS, &larger.v_scales_PGS})
        *scales = at::empty({layer.heads, count, kPage}, options_.dtype(torch::kFloat)).transpose(0, 1);
    const auto from = tensors_of(layer.pages), to = tensors_of(larger);
    for (size_t i = 0; pages_ > 0 && i < to.size(); ++i) to[i]->narrow(0, 0, pages_).copy_(*from[i]);
    layer.pages = larger;
  }
  // Pages are taken from the end: first those that were free already, then new ones in ascending order, so that
  // neighbours in a sequence are neighbours in memory.
  std::vector<int32_t> added(static_cast<size_t>(count - pages_));
  std::iota(added.rbegin(), added.rend(), static_cast<int32_t>(pages_));
  free_.insert(free_.begin(), added.begin(), added.end());
  users_.resize(static_cast<size_t>(count));
  pages_ = count;
}

CachedPositions KvCache::copy(int64_t length, int64_t sequence) const {
  const auto& copied = at(sequence);
  PRISM_ASSERT(length <= copied.length, "kv_cache", "{} of {} positions", length, copied.length);
  const auto pages = torch::tensor(copied.pages, torch::kLong).narrow(0, 0, pages_for(length)).to(options_.device());
  const int64_t unused = pages_for(length) * kPage - length;  // positions of the last page
  CachedPositions positions{.length = length, .layers = {}, .words = copied.words};
  if (!positions.words.empty()) positions.words.resize(static_cast<size_t>(length));
  for (const auto& layer : layers_) {
    auto copy = layer.pages;
    for (auto* tensor : tensors_of(copy)) {
      *tensor = tensor->index_select(0, pages);
      if (unused > 0) tensor->select(0, pages.size(0) - 1).narrow(1, kPage - unused, unused).zero_();
    }
    positions.layers.push_back(copy);
  }
  return positions;
}

void KvCache::restore(const CachedPositions& positions, int64_t sequence) {
  truncate(0, sequence);
  reserve(positions.length, sequence);
  auto& restored = at(sequence);
  const auto pages =
      torch::tensor(restored.pages, torch::kLong).narrow(0, 0, pages_for(positions.length)).to(options_.device());
  for (size_t i = 0; i < layers_.size(); ++i) {
    auto given = positions.layers.at(i);
    const auto from = tensors_of(given), to = tensors_of(layers_[i].pages);
    for (size_t t = 0; t < to.size(); ++t) to[t]->index_copy_(0, pages, from.at(t)->to(options_.device()));
  }
  restored.words = positions.words;
  restored.length = positions.length;
}

void KvCache::begin(const std::vector<SequenceRows>& rows) {
  rows_ = rows;
  groups_.clear();
  int64_t total = 0;
  size_t decoding = 0;
  for (const auto& [sequence, tokens, decodes, prompt_length, draw] : rows) {
    auto& longer = at(sequence);
    own_next_page(longer);
    reserve(longer.length + tokens, sequence);
    if (!longer.words.empty()) longer.words.resize(static_cast<size_t>(longer.length));  // a step that did not end
    total += tokens;
    decoding += decodes;
    PRISM_ASSERT(tokens > 0 && (!decodes || total == static_cast<int64_t>(decoding)), "kv_cache",
                 "decoded rows that do not come first, or {} of one sequence", tokens);
  }
  const auto page_N = at::empty({total}, torch::kLong), place_N = at::empty({total}, torch::kLong);
  auto* page = page_N.mutable_data_ptr<int64_t>();
  auto* place = place_N.mutable_data_ptr<int64_t>();
  for (const auto& each : rows) {
    const auto& longer = at(each.sequence);
    for (int64_t i = longer.length; i < longer.length + each.tokens; ++i) {
      *page++ = longer.pages[static_cast<size_t>(i / kPage)];
      *place++ = i % kPage;
    }
  }
  places_ = {page_N.to(options_.device()), place_N.to(options_.device())};
  if (decoding > 0) add_group(0, rows, 0, decoding);
  auto row = static_cast<int64_t>(decoding);
  for (size_t i = decoding; i < rows.size(); row += rows[i++].tokens) add_group(row, rows, i, i + 1);
}

void KvCache::add_group(int64_t first_row, const std::vector<SequenceRows>& rows, size_t first, size_t end) {
  const auto batch = static_cast<int64_t>(end - first);
  int64_t most = 1;
  for (size_t i = first; i < end; ++i) most = std::max<int64_t>(most, std::ssize(at(rows[i].sequence).pages));
  const auto table_BN = at::zeros({batch, most}, torch::kInt), lengths_B = at::empty({batch}, torch::kInt);
  for (int64_t b = 0; b < batch; ++b) {
    const auto& [sequence, tokens, decodes, prompt_length, draw] = rows[first + static_cast<size_t>(b)];
    const auto& pages = at(sequence).pages;
    std::copy(pages.begin(), pages.end(), table_BN.mutable_data_ptr<int32_t>() + b * most);
    lengths_B.mutable_data_ptr<int32_t>()[b] = static_cast<int32_t>(at(sequence).length + tokens);
  }
  groups_.push_back({first_row, batch, rows[first].tokens, rows[first], table_BN.to(options_.device()),
                     lengths_B.to(options_.device())});
}

int64_t KvCache::decoding_rows() const {
  return groups_.empty() || !groups_.front().first.decodes ? 0 : groups_.front().sequences;
}

void KvCache::append(size_t layer, const torch::Tensor& kv_NGD) {
  PRISM_ASSERT(!torch::GradMode::is_enabled() || !kv_NGD.requires_grad(), "kv_cache",
               "keys that require gradients cannot be cached");
  auto& [heads, width, pages] = layers_.at(layer);
  PRISM_ASSERT(places_.page_N.defined() && kv_NGD.size(0) == places_.page_N.size(0) && kv_NGD.size(1) == 2 * heads,
               "kv_cache", "layer {}: {} rows of {} heads in a step of others", layer, kv_NGD.size(0), kv_NGD.size(1));
  const auto append = [&](const torch::Tensor& stored_PGSD, const torch::Tensor& scales_PGS, int64_t first_head) {
    if (scales_PGS.defined()) return store_in_int8_pages(stored_PGSD, scales_PGS, kv_NGD, first_head, places_);
    store_in_pages(stored_PGSD, kv_NGD, first_head, places_);
  };
  append(pages.k_BGSD, pages.k_scales_PGS, 0);
  append(pages.v_BGSE, pages.v_scales_PGS, heads);
}

KeyValues KvCache::append_kept(size_t layer, int64_t sequence, const torch::Tensor& k_RGTD,
                               const torch::Tensor& v_RGTD) {
  const int64_t tokens = k_RGTD.size(2), past = length(sequence), end = past + tokens;
  auto& store = at(sequence).layers.at(layer);
  const auto append = [&](torch::Tensor& stored_RGSD, const torch::Tensor& more_RGTD) {
    const bool starts = past == 0 || !stored_RGSD.defined();
    PRISM_ASSERT(starts || stored_RGSD.size(0) == more_RGTD.size(0), "kv_cache", "layer {}: {} rows in a cache of {}",
                 layer, more_RGTD.size(0), stored_RGSD.size(0));
    if (starts || stored_RGSD.size(2) < end) {
      auto sizes = more_RGTD.sizes().vec();
      sizes[2] = pages_for(starts ? end : 2 * end) * kPage;
      auto larger = at::empty(sizes, options_);
      if (!starts) larger.narrow(2, 0, past).copy_(stored_RGSD.narrow(2, 0, past));
      stored_RGSD = larger;
    }
    stored_RGSD.narrow(2, past, tokens).copy_(more_RGTD);
    return stored_RGSD.narrow(2, 0, end);
  };
  return {append(store.k_RGSD, k_RGTD), append(store.v_RGSD, v_RGTD), {}};
}

void KvCache::append_words(const torch::Tensor& word_positions_N) {
  const auto words = word_positions_N.to(torch::kCPU).contiguous();
  const auto* word = words.const_data_ptr<int64_t>();
  for (const auto& each : rows_) {
    auto& stored = at(each.sequence).words;
    stored.insert(stored.end(), word, word + each.tokens);
    word += each.tokens;
  }
}

int64_t KvCache::word_opening(int64_t sequence) const {
  const auto& words = at(sequence).words;
  return words.empty() ? -1 : words.back() + 1;
}

void KvCache::end() {
  for (const auto& each : rows_) at(each.sequence).length += each.tokens;
  rows_.clear();
  groups_.clear();
}

KeyValues KvCache::pages(size_t layer, const Group& group) const {
  auto pages = layers_.at(layer).pages;
  pages.page_table_BN = group.page_table_BN;
  return pages;
}

}  // namespace prism
