// Compares the attention distance of two arms of an experiment, layer by layer: means over seeds and their difference.
//
//   const auto layers = compare_distances(prism_seeds, uniform_seeds);      // results of measure_attention_distance()
//   fmt::print("{:+.1f} +- {:.1f}\n", layers[4].difference, layers[4].difference_sd);
#pragma once

#include <cstdint>
#include <vector>

#include "prism/analysis/attention/attention_distance.h"

namespace prism {

/// One layer, averaged over the seeds of one arm. Distances in tokens.
struct ArmLayer {
  int64_t layer = 0, heads = 0, head_dim = 0;
  double distance = 0, seed_sd = 0, head_sd = 0;
  int64_t seeds = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("heads", heads, "query heads");
    v("head_dim", head_dim, "width of a head");
    v("distance", distance, "mean over seeds");
    v("seed_sd", seed_sd, "sample standard deviation over seeds; 0 for a single one");
    v("head_sd", head_sd, "sample standard deviation over heads, mean over seeds; 0 for a single head");
    v("seeds", seeds, "number of models of the arm");
  }
};

struct LayerComparison {
  int64_t layer = 0;
  ArmLayer arm, against;
  double difference = 0, difference_sd = 0;
  bool paired = false, same_heads = false;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("arm", arm, "the first arm");
    v("against", against, "the arm that it is compared with");
    v("difference", difference, "arm - against; negative: the arm attends to nearer tokens");
    v("difference_sd", difference_sd,
      "standard deviation of the differences if paired, else both arms' seed_sd added in squares");
    v("paired", paired, "true if seeds were paired, in the order given");
    v("same_heads", same_heads, "true if both arms have the same number of heads in this layer");
  }
};

/// Mean and standard deviation over the seeds of an arm, one row per layer.
/// @throws InputError without seeds, or if the seeds differ in layers or heads.
std::vector<ArmLayer> average_distances(const std::vector<AttentionDistance>& seeds);

/// Both arms and their difference, one row per layer. Seeds are paired in the given order if both arms have equally
/// many.
/// @throws InputError as average_distances(), and for arms of different layer counts.
/// Source: arXiv 2606.27449, figure 4. Differs: pairs seeds, where the paper adds the deviations of the arms.
std::vector<LayerComparison> compare_distances(const std::vector<AttentionDistance>& arm,
                                               const std::vector<AttentionDistance>& against);

}  // namespace prism
