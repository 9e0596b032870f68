// How GGUF files lay out the models of families: names of tensors, keys of metadata, order of rows.
//
//   name_from_gguf("blk.3.attn_q.weight")->folder;   // model.layers.3.self_attn.q_proj.weight
//   name_from_folder("model.norm.weight")->gguf;     // output_norm.weight
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "prism/checkpoint/families/family.h"
#include "prism/models/model_config.h"

namespace prism {

/// Keys of metadata. All but the first follow the architecture and a dot. Source: llama.cpp, gguf-py/gguf/constants.py.
namespace gguf_key {
inline constexpr const char* kArchitecture = "general.architecture";
inline constexpr const char *kLayers = "block_count", *kContext = "context_length", *kWidth = "embedding_length",
                            *kFfnWidth = "feed_forward_length", *kVocabSize = "vocab_size", *kExperts = "expert_count";
inline constexpr const char *kHeads = "attention.head_count", *kKvHeads = "attention.head_count_kv",
                            *kKeyWidth = "attention.key_length", *kValueWidth = "attention.value_length",
                            *kWindow = "attention.sliding_window", *kNormEps = "attention.layer_norm_rms_epsilon";
inline constexpr const char *kRotaryWidth = "rope.dimension_count", *kRotaryBase = "rope.freq_base",
                            *kScaling = "rope.scaling.type", *kScalingFactor = "rope.scaling.factor",
                            *kOldScalingFactor = "rope.scale_linear",
                            *kScalingContext = "rope.scaling.original_context_length",
                            *kAttentionFactor = "rope.scaling.attn_factor", *kBetaFast = "rope.scaling.yarn_beta_fast",
                            *kBetaSlow = "rope.scaling.yarn_beta_slow";
}  // namespace gguf_key

/// Names of tensors that the config depends on: the embedding, a head of its own, and the divisors of rotary angles.
inline constexpr const char *kGgufEmbedding = "token_embd.weight", *kGgufHead = "output.weight",
                            *kGgufFactors = "rope_freqs.weight";

/// The two names of a tensor.
struct GgufName {
  enum class Rows { other, queries, keys };  ///< queries, keys: the rows are those of heads that turn

  std::string gguf, folder;
  std::optional<size_t> layer = {};
  Rows rows = Rows::other;
};

/// The names of a tensor by that in a GGUF file, or by that in a model folder; std::nullopt if families have no such
/// tensor.
std::optional<GgufName> name_from_gguf(std::string_view name);
std::optional<GgufName> name_from_folder(std::string_view name);

/// Number of heads whose rows the family's GGUF files hold in another order than model folders; 0: the order is the
/// same. @param config  has the tensor's layer.
int64_t reordered_heads(const GgufName& name, const Family& family, const ModelConfig& config);

/// The rows of `heads` heads for rotation of the pairs (j, j + D/2), from those for (2j, 2j + 1), and back: row
/// s D/2 + j of a head (s = 0, 1) is row 2j + s in GGUF. Source: llama.cpp, convert_hf_to_gguf.py (permute).
/// @param values  [heads D] or [heads D, any].
torch::Tensor rows_from_neighbours(const torch::Tensor& values, int64_t heads);
torch::Tensor rows_to_neighbours(const torch::Tensor& values, int64_t heads);

/// Whether the family's GGUF files have rotation in layer `index`, which only the architecture tells.
bool turns_in_gguf(const Family& family, size_t index);

}  // namespace prism
