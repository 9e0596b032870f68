#include "prism/data/labelled/example_loader.h"

#include <algorithm>
#include <numeric>

#include "prism/core/error.h"
#include "prism/core/random.h"

namespace prism {
namespace {

/// Streams of random numbers.
constexpr uint64_t kFraction = 0x66726163, kOrder = 0x6f726465, kBatches = 0x62617463;

/// A uniform permutation in place (Fisher and Yates).
template <class T>
void shuffle(std::vector<T>& values, Random random) {
  for (size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i)]);
}

}  // namespace

ExampleLoader::ExampleLoader(const LabelledDataset& data, ExampleLoaderOptions options)
    : data_(data), options_(options), used_(static_cast<size_t>(data.size())) {
  constexpr int64_t kMost = int64_t{1} << 24;
  PRISM_CHECK(options.context >= 1 && options.context <= kMost && options.rows >= 1 && options.rows <= kMost, "dataset",
              "expected a context and a number of rows from 1 to {}; found {} and {}; change them.", kMost,
              options.context, options.rows);
  PRISM_CHECK(options.fraction > 0 && options.fraction <= 1, "dataset",
              "data.fraction: expected a share above 0 and at most 1; found {}; change it.", options.fraction);
  if (options.first > 0 && options.first < data.size()) used_.resize(static_cast<size_t>(options.first));
  std::iota(used_.begin(), used_.end(), int64_t{0});
  if (options.fraction < 1) {
    // The order does not depend on the seed of the run, so all runs with this fraction use the same examples.
    shuffle(used_, Random(0, kFraction));
    used_.resize(static_cast<size_t>(options.fraction * static_cast<double>(used_.size())));
    std::sort(used_.begin(), used_.end());
  }
  PRISM_CHECK(!used_.empty(), "dataset", "expected at least one example of {} in {}; found none; raise data.fraction.",
              data.size(), data.folder().string());
  PRISM_CHECK(!options.shuffle || size() >= options.rows, "dataset",
              "expected at least {} training examples, as many as a batch has rows; found {} in {}; lower "
              "train.batch_rows.",
              options.rows, size(), data.folder().string());
  cut_ = std::count_if(used_.begin(), used_.end(), [&](int64_t example) {
    return static_cast<int64_t>(data.tokens(example).size()) > options.context;
  });
}

int64_t ExampleLoader::length(int64_t example) const {
  return std::min(static_cast<int64_t>(data_.tokens(example).size()), options_.context);
}

double ExampleLoader::mean_length() const {
  int64_t sum = 0;
  for (const int64_t example : used_) sum += length(example);
  return static_cast<double>(sum) / static_cast<double>(size());
}

void ExampleLoader::lay_out_epoch(int64_t epoch) {
  if (epoch == epoch_) return;
  auto order = used_;
  const auto number = static_cast<uint64_t>(epoch);
  const auto seed = static_cast<uint64_t>(options_.seed);
  const auto rows = static_cast<size_t>(options_.rows);
  if (options_.shuffle) {
    shuffle(order, Random(seed, mix64(kOrder ^ mix64(number))));
    order.resize(order.size() / rows * rows);
  }
  const size_t pool = options_.shuffle ? rows * static_cast<size_t>(kPoolBatches) : order.size();
  batches_.clear();
  for (size_t first = 0; first < order.size(); first += pool) {
    const size_t end = std::min(first + pool, order.size());
    const auto begin = order.begin();
    std::stable_sort(begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end),
                     [&](int64_t a, int64_t b) { return length(a) < length(b); });
    std::vector<std::vector<int64_t>> of_pool;
    for (size_t at = first; at < end; at += rows)
      of_pool.emplace_back(begin + static_cast<std::ptrdiff_t>(at),
                           begin + static_cast<std::ptrdiff_t>(std::min(at + rows, end)));
    if (options_.shuffle) shuffle(of_pool, Random(seed, mix64(kBatches ^ mix64(number)) + first));
    batches_.insert(batches_.end(), of_pool.begin(), of_pool.end());
  }
  epoch_ = epoch;
}

ExampleBatch pad_texts(const std::vector<std::span<const int32_t>>& texts, int64_t context) {
  ExampleBatch batch;
  batch.rows = static_cast<int64_t>(texts.size());
  for (const auto& text : texts) {
    batch.lengths.push_back(static_cast<int32_t>(std::min(static_cast<int64_t>(text.size()), context)));
    batch.width = std::max(batch.width, static_cast<int64_t>(batch.lengths.back()));
  }
  batch.tokens.resize(static_cast<size_t>(batch.rows * batch.width));
  for (size_t b = 0; b < texts.size(); ++b) {
    const auto tokens = texts[b].first(static_cast<size_t>(batch.lengths[b]));
    std::copy(tokens.begin(), tokens.end(), batch.tokens.begin() + static_cast<std::ptrdiff_t>(b) * batch.width);
  }
  return batch;
}

ExampleBatch ExampleLoader::batch(int64_t n) {
  PRISM_ASSERT(n >= 0, "dataset", "batch {}", n);
  lay_out_epoch(n / batches_per_epoch());
  const auto& examples = batches_[static_cast<size_t>(n % batches_per_epoch())];
  std::vector<std::span<const int32_t>> texts;
  for (const int64_t example : examples) texts.push_back(data_.tokens(example));
  auto batch = pad_texts(texts, options_.context);
  batch.examples = examples;
  for (const int64_t example : examples) batch.labels.push_back(data_.label(example));
  return batch;
}

}  // namespace prism
