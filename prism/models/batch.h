// A batch of the data loader as tensors.
#pragma once

#include "prism/attention/forward_context.h"
#include "prism/data/labelled/example_loader.h"
#include "prism/data/loader.h"

namespace prism {

/// Views of a batch's tokens, labels and documents. Valid as long as the batch.
struct BatchTensors {
  explicit BatchTensors(Batch& batch);
  /// Divides each row into a prompt, which head budgets read, and what follows, which is predicted: labels before the
  /// last token of the prompt become -1.
  /// @param prompts_B  int32, tokens of each row's prompt, at least 1.
  void set_prompts(const torch::Tensor& prompts_B);
  /// set_prompts() with the first half of each row.
  void predict_second_halves();
  /// The labels of a head that predicts `skip` tokens ahead: those of the position skip - 1 later, -1 where that is
  /// after the window's end or in another document. skip 1: labels_BT.
  torch::Tensor labels_ahead(int64_t skip) const;
  torch::Tensor tokens_BT, labels_BT;  ///< int64
  ForwardContext context;              ///< documents and positions in them, if the batch has documents; word openings
};

/// Views of a batch of labelled examples. Valid as long as the batch.
struct ExampleTensors {
  /// @param rows  number of first rows to use; 0: all.
  explicit ExampleTensors(ExampleBatch& batch, int64_t rows = 0);
  torch::Tensor tokens_BT, labels_B;  ///< int64; labels are undefined if the batch has none
  ForwardContext context;             ///< lengths
};

}  // namespace prism
