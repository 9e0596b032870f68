#include "prism/models/model_config.h"

#include <algorithm>
#include <charconv>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/field_names.h"
#include "prism/core/text/names.h"
#include "prism/models/classification_head.h"

namespace prism {
namespace {

/// Larger than any real model, and small enough that products of two sizes cannot overflow.
constexpr int64_t kLargest = int64_t{1} << 24;

void complete_layer(LayerConfig& layer, size_t index, int64_t d_model) {
  PRISM_CHECK(layer.heads > 0, "model", "layer {}: expected at least 1 head; found {}; raise it.", index, layer.heads);
  if (layer.kv_heads == 0) layer.kv_heads = layer.heads;
  if (layer.head_dim == 0) {
    check_head_divides(layer.heads, index, d_model);
    layer.head_dim = d_model / layer.heads;
  }
  PRISM_CHECK(layer.heads * layer.head_dim <= kLargest, "model",
              "layer {}: expected a total width of the heads of at most {}; found {} heads of width {}; lower either.",
              index, kLargest, layer.heads, layer.head_dim);
  PRISM_CHECK(layer.rotary.kind == "rope" || layer.rotary.kind == "none", "model",
              "layer {}: expected rotary.kind rope or none; found \"{}\"; choose one of them.", index,
              layer.rotary.kind);
  PRISM_CHECK(
      layer.head_dim > 0 && (layer.head_dim % 2 == 0 || !layer.rotary.turns()), "model",
      "layer {}: expected an even head width, since features turn in pairs; found {}; change head_dim or heads.", index,
      layer.head_dim);
  PRISM_CHECK(layer.kv_heads > 0 && layer.heads % layer.kv_heads == 0, "model",
              "layer {}: expected kv_heads that divide its {} heads; found {}; choose a divisor.", index, layer.heads,
              layer.kv_heads);
  check(layer.ffn, index);
  check(layer.budget, index);
  PRISM_CHECK(layer.norm == "rms" || layer.norm == "layer" || layer.norm == "none", "model",
              "layer {}: expected norm rms, layer or none; found \"{}\"; choose one of them.", index, layer.norm);
  PRISM_CHECK(layer.norm_place == "pre" || layer.norm_place == "post", "model",
              "layer {}: expected norm_place pre or post; found \"{}\"; choose one of them.", index, layer.norm_place);
  PRISM_CHECK(layer.norm != "none" || layer.norm_place == "pre", "model",
              "layer {}: expected a norm for norm_place post; found none; set norm to rms or layer.", index);
  PRISM_CHECK(
      layer.output_projection || layer.heads * layer.head_dim == d_model, "model",
      "layer {}: expected a total head width of d_model = {} without output_projection; found {} heads of width "
      "{}; add the projection.",
      index, d_model, layer.heads, layer.head_dim);
  PRISM_CHECK(layer.output_projection || !layer.output_bias, "model",
              "layer {}: expected an output_projection for output_bias; found none; leave out the bias.", index);
  if (layer.rotary.turns())
    naming_field(fmt::format("layer {}", index), [&] { rotary_angles(layer.rotary, layer.head_dim); });
}

/// Checks the fields that make a model a classifier or a language model, and its positions.
void check_task(const ModelConfig& config) {
  constexpr int64_t kMostClasses = 65536;
  PRISM_CHECK(config.classes == 0 || (config.classes >= 2 && config.classes <= kMostClasses), "model",
              "model.classes: expected 0 (a language model) or from 2 to {}; found {}; change it.", kMostClasses,
              config.classes);
  PRISM_CHECK(config.attention == "causal" || config.attention == "full", "model",
              "model.attention: expected causal or full; found \"{}\"; choose one of them.", config.attention);
  PRISM_CHECK(config.classes > 0 || config.attention == "causal", "model",
              "model.attention: expected causal in a language model, which must not see the tokens it predicts; found "
              "full; set it to causal, or give model.classes.");
  PRISM_CHECK(config.skip >= 0 && config.skip <= config.context, "model",
              "model.skip: expected 0 to {}, the context; found {}; change it.", config.context, config.skip);
  PRISM_CHECK(config.classes == 0 || config.skip == 0, "model",
              "model.skip: expected 0 in a classifier, which predicts no tokens; found {}; leave it out.", config.skip);
  for (size_t i = 0; i < config.layers.size(); ++i) {
    PRISM_CHECK(config.attention == "causal" || config.layers[i].window == 0, "model",
                "layer {}: expected no window for full attention; found {}; leave it out.", i, config.layers[i].window);
    PRISM_CHECK(config.classes > 0 || config.layers[i].budget.summary == "tokens", "model",
                "layer {}: expected budget.summary tokens in a language model, whose budgets read the prompt; found "
                "padded; set it to tokens.",
                i);
  }
  find_pooling(config.pooling);
  PRISM_CHECK(config.budget_tau >= kLeastTau && config.budget_tau <= kMostTau, "model",
              "model.budget_tau: expected a temperature from {} to {}; found {}; change it.", kLeastTau, kMostTau,
              config.budget_tau);
  PRISM_CHECK(
      !config.learned_positions || !config.sinusoidal_positions, "model",
      "expected only one of model.learned_positions and model.sinusoidal_positions; found both; leave one out.");
  PRISM_CHECK(!config.sinusoidal_positions || config.d_model % 2 == 0, "model",
              "model.d_model: expected an even number with model.sinusoidal_positions; found {}; change it.",
              config.d_model);
}

/// Checks that a layer shares the projections of an earlier layer of its own kind and size.
void check_mirror(const std::vector<LayerConfig>& layers, size_t index) {
  const auto& layer = layers[index];
  if (layer.mirror_of == -1) return;
  PRISM_CHECK(layer.mirror_of >= 0 && layer.mirror_of < static_cast<int64_t>(index), "model",
              "layer {}: expected mirror_of -1 or an earlier layer; found {}; change it.", index, layer.mirror_of);
  const auto& owner = layers[static_cast<size_t>(layer.mirror_of)];
  PRISM_CHECK(owner.mirror_of == -1, "model",
              "layer {}: expected mirror_of a layer with projections of its own; found layer {}, which uses those of "
              "layer {}; name that layer.",
              index, layer.mirror_of, owner.mirror_of);
  PRISM_CHECK(layer.ffn.kind == owner.ffn.kind && layer.ffn.width == owner.ffn.width, "model",
              "layer {}: expected the ffn.kind and ffn.width of layer {}, whose projections it uses: {} of width {}; "
              "found {} of width {}; make them equal.",
              index, layer.mirror_of, owner.ffn.kind, owner.ffn.width, layer.ffn.kind, layer.ffn.width);
  PRISM_CHECK(layer.ffn.depth == 1 && owner.ffn.depth == 1, "model",
              "layer {}: expected ffn.depth 1 in layers that share projections; found {}; change it.", index,
              std::max(layer.ffn.depth, owner.ffn.depth));
}

/// Sets mirror_of by the shorthand.
void mirror_layers(const LayersShorthand& shorthand, std::vector<LayerConfig>& layers) {
  PRISM_CHECK(shorthand.mirror_order == "mirror" || shorthand.mirror_order == "same", "model",
              "model.mirror_order: expected mirror or same; found \"{}\"; choose one of them.", shorthand.mirror_order);
  const auto count = static_cast<int64_t>(layers.size()), middle = shorthand.mirror_middle;
  if (middle == -1) {
    PRISM_CHECK(shorthand.mirror_order == "mirror", "model",
                "model.mirror_order: expected a number of layers in model.mirror_middle beside it; found none; give "
                "it.");
    return;
  }
  PRISM_CHECK(count >= 2, "model",
              "model.mirror_middle: expected at least 2 layers, of which one can share the projections of the other; "
              "found {}; leave it out, or give model.schedule more layers.",
              count);
  PRISM_CHECK(middle >= 0 && middle <= count - 2, "model",
              "model.mirror_middle: expected a number of layers below {}, or -1 for none that share; found {}; change "
              "it.",
              count - 1, middle);
  PRISM_CHECK((count - middle) % 2 == 0, "model",
              "model.mirror_middle: expected as many layers before the middle as after it; found {} layers around a "
              "middle of {}; choose {}.",
              count - middle, middle, middle + 1);
  const int64_t pairs = (count - middle) / 2;
  for (int64_t i = 0; i < pairs; ++i)
    layers[static_cast<size_t>(shorthand.mirror_order == "mirror" ? count - 1 - i : pairs + middle + i)].mirror_of = i;
}

/// Parses the key/value heads of each layer; 0 means as many as query heads. "/4" is a ratio, anything else a schedule.
HeadSchedule parse_kv_schedule(const std::string& text, const HeadSchedule& heads) {
  if (text.empty()) return HeadSchedule(heads.size(), 0);
  if (text[0] != '/') return parse_head_schedule(text);
  int64_t ratio = 0;
  const auto [end, code] = std::from_chars(text.data() + 1, text.data() + text.size(), ratio);
  PRISM_CHECK(code == std::errc() && end == text.data() + text.size() && ratio >= 1, "model",
              "expected a ratio such as /4; found \"{}\"; write / and a whole number.", text);
  HeadSchedule kv_heads;
  for (size_t i = 0; i < heads.size(); ++i) {
    PRISM_CHECK(heads[i] % ratio == 0, "model",
                "expected heads that {} divides in every layer; found {} in layer {}; choose another ratio "
                "or list the key/value heads.",
                ratio, heads[i], i);
    kv_heads.push_back(heads[i] / ratio);
  }
  return kv_heads;
}

/// Names of the shorthand's fields that are set.
std::vector<std::string> given_shorthand(const LayersShorthand& shorthand) {
  const Json fields = fields_to_json(shorthand), empty = fields_to_json(LayersShorthand());
  std::vector<std::string> given;
  for (const auto& [name, value] : fields.items())
    if (value != empty[name]) given.push_back(name);
  return given;
}

}  // namespace

HeadSchedule heads_of(const ModelConfig& config) {
  HeadSchedule heads;
  for (const auto& layer : config.layers) heads.push_back(layer.heads);
  return heads;
}

bool shares_pair(const std::vector<LayerConfig>& layers, size_t index) {
  return layers[index].mirror_of >= 0 || std::any_of(layers.begin(), layers.end(), [&](const LayerConfig& layer) {
           return layer.mirror_of == static_cast<int64_t>(index);
         });
}

bool has_word_positions(const ModelConfig& config) {
  return std::any_of(config.layers.begin(), config.layers.end(),
                     [](const LayerConfig& layer) { return layer.rotary.turns() && layer.rotary.word_dims > 0; });
}

int64_t layers_with_budgets(const ModelConfig& config) {
  return std::count_if(config.layers.begin(), config.layers.end(),
                       [](const LayerConfig& layer) { return layer.budget.is_on(); });
}

std::vector<std::string> schedule_warnings(const ModelConfig& config) {
  std::vector<int64_t> head_dims;
  for (const auto& layer : config.layers) head_dims.push_back(layer.head_dim);
  return head_schedule_warnings(heads_of(config), config.base_heads, head_dims);
}

void expand_shorthand(ModelConfig& config) {
  const auto given = given_shorthand(config);
  PRISM_CHECK(given.empty() || config.layers.empty(), "model",
              "expected layers or their shorthand; found both, {} beside layers; leave one out.", join_names(given));
  if (!config.layers.empty()) return;
  PRISM_CHECK(!config.schedule.empty(), "model",
              "expected a schedule or a list of layers; found neither; set model.schedule, e.g. 8x6.");
  const auto heads = naming_field("model.schedule", [&] { return parse_head_schedule(config.schedule); });
  const auto kv_heads = naming_field("model.kv_schedule", [&] { return parse_kv_schedule(config.kv_schedule, heads); });
  PRISM_CHECK(kv_heads.size() == heads.size(), "model",
              "model.kv_schedule: expected {} layers, as in schedule; found {}; write one entry for each layer.",
              heads.size(), kv_heads.size());
  PRISM_CHECK(config.ffn_width == 0 || config.each.ffn.width == 0, "model",
              "expected ffn_width or ffn.width; found both, {} and {}; leave one out.", config.ffn_width,
              config.each.ffn.width);
  for (size_t i = 0; i < heads.size(); ++i) {
    auto& layer = config.layers.emplace_back(config.each);
    layer.heads = heads[i];
    layer.kv_heads = kv_heads[i];
    if (layer.ffn.width == 0) layer.ffn.width = config.ffn_width;
  }
  mirror_layers(config, config.layers);
  static_cast<LayersShorthand&>(config) = {};
}

void complete(ModelConfig& config) {
  PRISM_CHECK(config.vocab_size != 0, "model",
              "expected a vocab_size; found none; give model.vocab_size or data with a tokenizer.json.");
  for (const auto& [name, size] :
       {std::pair{"vocab_size", config.vocab_size}, {"d_model", config.d_model}, {"context", config.context}})
    PRISM_CHECK(size > 0 && size <= kLargest, "model", "model.{}: expected a size from 1 to {}; found {}; change it.",
                name, kLargest, size);
  constexpr double kSmallest = 1e-20;  // far above the smallest float32
  for (const auto& [name, value] : {std::pair{"norm_eps", config.norm_eps}, {"init_std", config.init_std}})
    PRISM_CHECK(value >= kSmallest && value <= 1, "model",
                "model.{}: expected a number from {} to 1; found {}; change it.", name, kSmallest, value);
  PRISM_CHECK(config.initialisation == "gpt2" || config.initialisation == "ladder", "model",
              "model.initialisation: expected gpt2 or ladder; found \"{}\"; choose one of them.",
              config.initialisation);
  check_task(config);
  PRISM_CHECK(!config.layers.empty(), "model", "expected at least one layer; found none; give a schedule or layers.");
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto& layer = config.layers[i];
    for (const auto& [name, size] : {std::pair{"heads", layer.heads},
                                     {"kv_heads", layer.kv_heads},
                                     {"head_dim", layer.head_dim},
                                     {"window", layer.window},
                                     {"ffn.width", layer.ffn.width}})
      PRISM_CHECK(size >= 0 && size <= kLargest, "model",
                  "layer {}: {}: expected a size from 0 to {}; found {}; change it.", i, name, kLargest, size);
  }
  // The rules apply only to models whose heads split d_model.
  const bool split = std::all_of(config.layers.begin(), config.layers.end(), [&](const LayerConfig& layer) {
    return layer.head_dim == 0 || layer.heads * layer.head_dim == config.d_model;
  });
  if (split) check_head_schedule(heads_of(config), config.d_model, config.base_heads, config.allow_any);
  for (size_t i = 0; i < config.layers.size(); ++i) complete_layer(config.layers[i], i, config.d_model);
  for (size_t i = 0; i < config.layers.size(); ++i) check_mirror(config.layers, i);
}

void set_context(ModelConfig& config, const ContextOptions& options) {
  const int64_t before = config.context;
  PRISM_CHECK(options.context > 0 || (options.context == 0 && options.rope_scaling.empty()), "model",
              "--context: expected at least 1 token{}; found {}; raise it.",
              options.rope_scaling.empty() ? "" : " with --rope-scaling", options.context);
  if (options.context == 0) return;
  PRISM_CHECK(!config.learned_positions || options.context == before, "model",
              "--context: expected {} tokens, for which the model has learned positions; found {}; leave it out.",
              before, options.context);
  const bool can_scale = std::any_of(config.layers.begin(), config.layers.end(),
                                     [](const LayerConfig& layer) { return layer.rotary.turns(); });
  PRISM_CHECK(can_scale || options.rope_scaling.empty(), "model",
              "--rope-scaling: expected a model with rotary positions; found none; leave it out.");
  PRISM_CHECK(options.context <= before || !options.rope_scaling.empty(), "model",
              "--context: expected at most {} tokens, the model's context; found {}; lower it{}.", before,
              options.context, can_scale ? ", or give --rope-scaling yarn or linear" : "");
  config.context = options.context;
  if (options.rope_scaling.empty()) return;
  for (auto& layer : config.layers)
    if (layer.rotary.turns()) lengthen(layer.rotary, before, options);
}

}  // namespace prism
