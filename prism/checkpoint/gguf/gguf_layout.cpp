#include "prism/checkpoint/gguf/gguf_layout.h"

#include <fmt/format.h>

#include <charconv>

namespace prism {
namespace {

struct NamePair {
  std::string_view gguf, folder;
};

/// Names outside the layers, and names within "blk.N." and "model.layers.N.".
constexpr NamePair kOutside[] = {{kGgufEmbedding, "model.embed_tokens.weight"},
                                 {"output_norm.weight", "model.norm.weight"},
                                 {kGgufHead, "lm_head.weight"}};
constexpr NamePair kQueries{"attn_q", "self_attn.q_proj"}, kKeys{"attn_k", "self_attn.k_proj"};
constexpr NamePair kInLayer[] = {{"attn_norm", "input_layernorm"},
                                 kQueries,
                                 kKeys,
                                 {"attn_v", "self_attn.v_proj"},
                                 {"attn_output", "self_attn.o_proj"},
                                 {"attn_q_norm", "self_attn.q_norm"},
                                 {"attn_k_norm", "self_attn.k_norm"},
                                 {"ffn_norm", "post_attention_layernorm"},
                                 {"ffn_gate", "mlp.gate_proj"},
                                 {"ffn_up", "mlp.up_proj"},
                                 {"ffn_down", "mlp.down_proj"}};
constexpr NamePair kLayerStart{"blk.", "model.layers."};

/// Splits "blk.12.attn_q.weight" into 12, "attn_q" and ".weight".
struct LayerName {
  size_t layer = 0;
  std::string_view part, kind;
};
std::optional<LayerName> split_layer_name(std::string_view name, std::string_view start) {
  if (!name.starts_with(start)) return std::nullopt;
  LayerName found;
  const auto* begin = name.data() + start.size();
  const auto [end, code] = std::from_chars(begin, name.data() + name.size(), found.layer);
  if (code != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  const std::string_view rest = name.substr(static_cast<size_t>(end + 1 - name.data()));
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  found.part = rest.substr(0, dot);
  found.kind = rest.substr(dot);
  return found;
}

/// @param side  the member of NamePair that `name` is.
std::optional<GgufName> find_name(std::string_view name, std::string_view NamePair::*side) {
  for (const auto& pair : kOutside)
    if (pair.*side == name) return GgufName{.gguf = std::string(pair.gguf), .folder = std::string(pair.folder)};
  const auto found = split_layer_name(name, kLayerStart.*side);
  if (!found) return std::nullopt;
  for (const auto& pair : kInLayer) {
    if (pair.*side != found->part) continue;
    const auto full = [&](std::string_view start, std::string_view part) {
      return fmt::format("{}{}.{}{}", start, found->layer, part, found->kind);
    };
    using Rows = GgufName::Rows;
    const auto rows = pair.gguf == kQueries.gguf ? Rows::queries : pair.gguf == kKeys.gguf ? Rows::keys : Rows::other;
    return GgufName{.gguf = full(kLayerStart.gguf, pair.gguf),
                    .folder = full(kLayerStart.folder, pair.folder),
                    .layer = found->layer,
                    .rows = rows};
  }
  return std::nullopt;
}

}  // namespace

std::optional<GgufName> name_from_gguf(std::string_view name) {
  return find_name(name, &NamePair::gguf);
}

std::optional<GgufName> name_from_folder(std::string_view name) {
  return find_name(name, &NamePair::folder);
}

int64_t reordered_heads(const GgufName& name, const Family& family, const ModelConfig& config) {
  if (!family.gguf_pairs_neighbours || !name.layer || name.rows == GgufName::Rows::other) return 0;
  const auto& layer = config.layers.at(*name.layer);
  return name.rows == GgufName::Rows::queries ? layer.heads : layer.kv_heads;
}

torch::Tensor rows_from_neighbours(const torch::Tensor& values, int64_t heads) {
  return values.view({heads, values.size(0) / heads / 2, 2, -1}).transpose(1, 2).reshape(values.sizes());
}

torch::Tensor rows_to_neighbours(const torch::Tensor& values, int64_t heads) {
  return values.view({heads, 2, values.size(0) / heads / 2, -1}).transpose(1, 2).reshape(values.sizes());
}

bool turns_in_gguf(const Family& family, size_t index) {
  return family.gguf_unturned == 0 || static_cast<int64_t>(index + 1) % family.gguf_unturned != 0;
}

}  // namespace prism
