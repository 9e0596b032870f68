#include "prism/layers/feed_forward.h"

#include "prism/core/error.h"
#include "prism/layers/gelu_mlp.h"
#include "prism/layers/glu_mlp.h"
#include "prism/layers/relu_mlp.h"

namespace prism {
namespace {

struct Kind {
  const char *name, *formula;
  bool has_depth, has_bias;
  std::shared_ptr<FeedForward> (*make)(int64_t, const FfnConfig&, bool shares);
};

template <class Module>
std::shared_ptr<FeedForward> make(int64_t d_model, const FfnConfig& config, bool /*shares*/) {
  return std::make_shared<Module>(d_model, config);
}

template <>
std::shared_ptr<FeedForward> make<GluMlp>(int64_t d_model, const FfnConfig& config, bool shares) {
  return std::make_shared<GluMlp>(d_model, config, shares);
}

constexpr Kind kKinds[] = {
    {"swiglu", "W_down (silu(W_gate x) * W_up x), supports bias", false, true, make<GluMlp>},
    {"g2lu", "W_down (silu(W_gate x * silu(W_inner x)) * W_up x)", false, false, make<GluMlp>},
    {"relu", "W_down max(0, W_up x), supports depth and bias", true, true, make<ReluMlp>},
    {"gelu", "W_down gelu(W_up x), supports bias", false, true, make<GeluMlp>},
};

/// The names of the kinds for which `wanted` returns true, e.g. "swiglu or relu".
std::string names_of_kinds(bool (*wanted)(const Kind&)) {
  std::vector<std::string> names;
  for (const auto& kind : kKinds)
    if (wanted(kind)) names.emplace_back(kind.name);
  std::string text = names.front();
  for (size_t i = 1; i < names.size(); ++i) text += (i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

const Kind* find_kind(const std::string& name) {
  for (const auto& kind : kKinds)
    if (kind.name == name) return &kind;
  return nullptr;
}

}  // namespace

torch::Tensor FeedForward::gate(const torch::Tensor&) const {
  return {};
}

const char* FfnConfig::feed_forward_help() {
  static const std::string text = [] {
    std::string formulas;
    for (const auto& row : kKinds)
      formulas += fmt::format("{}{}: {}", formulas.empty() ? "" : "; ", row.name, row.formula);
    return formulas;
  }();
  return text.c_str();
}

void check(const FfnConfig& config, size_t layer) {
  const Kind* kind = find_kind(config.kind);
  PRISM_CHECK(kind != nullptr, "model", "layer {}: expected ffn.kind {}; found \"{}\"; choose one of them.", layer,
              names_of_kinds([](const Kind&) { return true; }), config.kind);
  PRISM_CHECK(config.width > 0, "model", "layer {}: expected ffn.width of at least 1; found {}; give model.ffn_width.",
              layer, config.width);
  constexpr int64_t kDeepest = 1000;
  PRISM_CHECK(
      config.depth >= 1 && config.depth <= (kind->has_depth ? kDeepest : 1), "model",
      "layer {}: expected ffn.depth {}; found {}; change it{}.", layer,
      kind->has_depth ? fmt::format("within 1-{}", kDeepest) : "1 for " + config.kind, config.depth,
      kind->has_depth ? "" : ", or choose " + names_of_kinds([](const Kind& other) { return other.has_depth; }));
  PRISM_CHECK(kind->has_bias || !config.bias, "model",
              "layer {}: expected no ffn.bias for {}; found one; leave it out, or choose {}.", layer, config.kind,
              names_of_kinds([](const Kind& other) { return other.has_bias; }));
  PRISM_CHECK(config.kind == "g2lu" || !config.gate_bias, "model",
              "layer {}: expected no ffn.gate_bias for {}; found one; leave it out, or choose g2lu.", layer,
              config.kind);
}

std::shared_ptr<FeedForward> make_feed_forward(int64_t d_model, const FfnConfig& config, bool shares) {
  const Kind* kind = find_kind(config.kind);
  PRISM_ASSERT(kind != nullptr, "feed_forward", "unknown feed-forward kind {}", config.kind);
  return kind->make(d_model, config, shares);
}

}  // namespace prism
