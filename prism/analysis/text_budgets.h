// What a classifier's head budgets decide for one text, with attention maps of the heads with the largest p.
//
//   const auto found = read_text_budgets(model.classifier, encode_texts(texts, *model.tokenizer), /*maps=*/4);
//   for (const auto& layer : found.layers) fmt::print("layer {}: s = {:.3f}\n", layer.layer, layer.share);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prism/models/classifier.h"

namespace prism {

/// What one layer's head budget decides for a text.
struct LayerDecision {
  int64_t layer = 0;
  double share = 0;
  std::vector<double> probability;
  std::vector<int64_t> kept;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("share", share, "share of heads s");
    v("probability", probability, "p of each head");
    v("kept", kept, "the heads that are computed");
  }
};

/// The attention map of a head of a layer with a budget.
struct DecidedMap {
  int64_t layer = 0, head = 0;
  double probability = 0;
  bool is_kept = false;
  std::vector<std::vector<double>> weights;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("head", head, "head, counted from 0");
    v("probability", probability, "p of the head");
    v("is_kept", is_kept, "whether the head is computed");
    v("weights", weights, "attention weights: a row for each token, see rows_of()");
  }
};

struct TextBudgets {
  int64_t predicted = 0;              ///< the most probable class
  std::vector<int64_t> tokens;        ///< those that were read
  std::vector<LayerDecision> layers;  ///< the layers with a budget
  std::vector<DecidedMap> maps;       ///< layer by layer, the largest p first
};

/// Labels a text and records what the budgets decide.
/// @param tokens  of the text; those beyond the context are left out.
/// @param maps    number of attention maps in each layer with a budget; of all heads if it has fewer.
TextBudgets read_text_budgets(const Classifier& classifier, std::span<const int32_t> tokens, int64_t maps);

}  // namespace prism
