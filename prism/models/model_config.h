// Configuration of a model: sizes shared by all layers, and the list of layers.
//
//   auto config = fields_from_json<ModelConfig>(json, "model");  // {"d_model": 768, "schedule": "3x2,6x2,12x8", ...}
//   expand_shorthand(config);                                    // turns the schedule into layers; then apply
//   overrides complete(config);                                            // fills in defaults and checks everything
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/attention/context_length.h"
#include "prism/attention/head_schedule.h"
#include "prism/attention/layer_config.h"

namespace prism {

/// Shorthand that recipes may use instead of the list of layers.
struct LayersShorthand {
  std::string schedule, kv_schedule;
  int64_t ffn_width = 0, mirror_middle = -1;
  std::string mirror_order = "mirror";
  /// Configuration common to all layers, except the heads; its fields appear as fields of this struct.
  LayerConfig each;
  template <class Visitor>
  void visit(Visitor& v) {
    v("schedule", schedule,
      "shorthand for heads: heads x layers, e.g. 3x2,6x2,8x2,12x6 (3 heads in 2 layers, ...), or a list 3,3,6,6");
    v("kv_schedule", kv_schedule,
      "shorthand for key/value heads, in the same form, or /4: a quarter of each layer's query heads; empty: as many "
      "as query heads");
    v("ffn_width", ffn_width, "shorthand for the hidden width of every layer's feed-forward part");
    v("mirror_middle", mirror_middle,
      "shorthand for mirror_of: number of layers in the middle that share nothing, while each layer before them shares "
      "W_up and W_down with one after them; -1: no layers share");
    v("mirror_order", mirror_order,
      "which layers share. mirror: the first with the last, the second with the last but one; same: the first with the "
      "first of the layers after the middle, the second with the second of them, and so on");
    auto for_every_layer = [&v](const char* name, auto& value, const char* help) {
      v(name, value, ("shorthand for every layer: " + std::string(help)).c_str());
    };
    each.visit_common(for_every_layer);
  }
};

/// The fields of the shorthand appear as fields of the model. They are empty in a complete config.
struct ModelConfig : LayersShorthand {
  int64_t vocab_size = 0, d_model = 0, context = 1024;
  std::string attention = "causal", pooling = "mean";
  int64_t classes = 0, skip = 0;
  bool tied = true, learned_positions = false, sinusoidal_positions = false, final_norm = true;
  double norm_eps = 1e-5, init_std = 0.02, budget_tau = BudgetSchedule().tau(1);
  std::string initialisation = "gpt2";
  // Rules of the schedule.
  int64_t base_heads = 0;
  bool allow_any = false;
  std::vector<LayerConfig> layers;

  template <class Visitor>
  void visit(Visitor& v) {
    v("vocab_size", vocab_size, "rows of the embedding; 0: the tokenizer's vocabulary size");
    v("d_model", d_model, "width of the residual stream; required");
    v("context", context, "maximum sequence length in tokens");
    v("classes", classes, "classes of a classifier, at least 2; 0: the model is a language model");
    v("attention", attention,
      "causal: a token attends to itself and the tokens before it; full: to all tokens, for classifiers");
    v("pooling", pooling,
      "classifiers: what the classification head reads. mean: the mean of the hidden states; first: the hidden state "
      "of "
      "the first token");
    v("tied", tied, "the language-model head shares its weights with the embedding");
    v("skip", skip,
      "language models: in training, a second output head with weights of its own predicts the token this many places "
      "ahead; 1: the next token, like the first head; 0: no second head");
    v("learned_positions", learned_positions, "add a learned vector for each position of the context to the embedding");
    v("sinusoidal_positions", sinusoidal_positions,
      "add sines and cosines of the position to the embedding, as in arXiv 1706.03762");
    v("final_norm", final_norm,
      "norm before the head: LayerNorm if the norm of every layer is a LayerNorm, else RMSNorm");
    v("norm_eps", norm_eps, "epsilon of the norms, added to the mean square (LayerNorm: to the variance)");
    v("budget_tau", budget_tau, "head budgets: temperature of the softmax over heads, for inference; training sets it");
    v("initialisation", initialisation,
      "gpt2: N(0, init_std^2), projections into the residual stream divided by sqrt(2 layers), biases 0; ladder, "
      "for configs/ladder: embedding and positions N(0, 1), projections N(0, 1 / min(fan-in, d_model)), but weights "
      "and biases of the feed-forward part uniform within 1 / sqrt(fan-in)");
    v("init_std", init_std, "gpt2: standard deviation of the weights");
    LayersShorthand::visit(v);
    v("base_heads", base_heads, "number of heads that the last layer must have; 0: any");
    v("allow_any", allow_any, "allow head counts that fall from layer to layer or do not end at base_heads");
    v("layers", layers, "the layers, first to last; use either this or the shorthand");
  }
};

/// Number of heads of each layer.
HeadSchedule heads_of(const ModelConfig& config);

/// Returns true if a layer's feed-forward part shares projections, as the owner or as a user.
bool shares_pair(const std::vector<LayerConfig>& layers, size_t index);

/// Number of layers that have a head budget.
int64_t layers_with_budgets(const ModelConfig& config);

/// Returns true if some layer turns features by the position in the word (RotaryConfig::word_dims).
bool has_word_positions(const ModelConfig& config);

/// head_schedule_warnings() for a complete config.
std::vector<std::string> schedule_warnings(const ModelConfig& config);

/// Replaces the shorthand by the list of layers. head_dim and kv_heads left open stay 0 until complete().
/// @throws InputError if both or neither are given, or the shorthand cannot be parsed.
void expand_shorthand(ModelConfig& config);

/// Fills in defaults (kv_heads = heads, head_dim = d_model / heads) and checks the config: positive sizes, even head
/// widths, kv_heads that divide heads, and the rules of head schedules if heads split d_model.
/// @throws InputError naming the layer and a way to fix it.
void complete(ModelConfig& config);

/// Changes the context of a complete config. A longer one needs a scaling of rotary positions, which layers without
/// rotary positions do not have. @throws InputError for a longer context without one, and as lengthen().
void set_context(ModelConfig& config, const ContextOptions& options);

}  // namespace prism
