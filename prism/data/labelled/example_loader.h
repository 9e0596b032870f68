// Batches of labelled examples of similar length.
//
//   ExampleLoader loader(data, {.context = 256, .rows = 32, .seed = 1});
//   for (int64_t n = 0; n < epochs * loader.batches_per_epoch(); ++n) use(loader.batch(n));
#pragma once

#include <cstdint>
#include <vector>

#include "prism/data/labelled/dataset.h"

namespace prism {

/// B examples, padded to the longest of them.
struct ExampleBatch {
  int64_t rows = 0, width = 0;    ///< B; tokens of the longest example, T
  std::vector<int64_t> tokens;    ///< [B T]; padding is 0
  std::vector<int32_t> lengths;   ///< [B] tokens of each example
  std::vector<int64_t> labels;    ///< [B]
  std::vector<int64_t> examples;  ///< [B] indices into the dataset
};

/// A batch of texts, padded to the longest. Labels and indices are left empty.
/// @param texts  tokens of each; those beyond `context` are left out.
ExampleBatch pad_texts(const std::vector<std::span<const int32_t>>& texts, int64_t context);

struct ExampleLoaderOptions {
  int64_t context = 512, rows = 32, seed = 1;
  double fraction = 1;  ///< share of the examples that is used; a larger share contains a smaller one
  int64_t first = 0;    ///< use only the first N of the split; 0: all
  bool shuffle = true;  ///< false: all examples in order of length, once (evaluation)
};

/// Each epoch is a seeded permutation of the examples. It is cut into pools of kPoolBatches batches; the examples of a
/// pool are sorted by length, cut into batches, and the batches are shuffled. All batches have the same number of rows;
/// the examples left over, which differ from epoch to epoch, are left out. Batch n depends only on (data, options, n).
/// Examples longer than the context lose their end. Without `shuffle`, the last batch may have fewer rows.
class ExampleLoader {
 public:
  static constexpr int64_t kPoolBatches = 64;

  /// @param data  must outlive the loader.
  /// @throws InputError for options out of range, a fraction that leaves no example, or with `shuffle` fewer examples
  /// than rows.
  ExampleLoader(const LabelledDataset& data, ExampleLoaderOptions options);

  int64_t batches_per_epoch() const { return (size() + (options_.shuffle ? 0 : options_.rows - 1)) / options_.rows; }
  /// Number of examples used.
  int64_t size() const { return static_cast<int64_t>(used_.size()); }
  /// Mean number of tokens of the used examples, after cutting.
  double mean_length() const;
  /// Number of used examples that are cut because they are longer than the context.
  int64_t cut_examples() const { return cut_; }
  /// Batch n, counted over all epochs.
  ExampleBatch batch(int64_t n);

 private:
  int64_t length(int64_t example) const;
  /// Computes the order of an epoch, batch by batch.
  void lay_out_epoch(int64_t epoch);

  const LabelledDataset& data_;
  ExampleLoaderOptions options_;
  std::vector<int64_t> used_;  ///< examples in use, in the order of the dataset
  int64_t cut_ = 0;
  int64_t epoch_ = -1;  ///< the epoch of batches_
  std::vector<std::vector<int64_t>> batches_;
};

}  // namespace prism
