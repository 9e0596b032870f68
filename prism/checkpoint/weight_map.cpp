#include "prism/checkpoint/weight_map.h"

#include "prism/core/error.h"

namespace prism {

std::vector<NamedTensor> llama_weights(Decoder decoder) {
  const auto& layers = decoder->config().layers;
  std::vector<NamedTensor> rows = {{"model.embed_tokens.weight", decoder->embedding->weight}};
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& block = decoder->blocks[i];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    const int64_t q_rows = layers[i].heads * layers[i].head_dim, kv_rows = layers[i].kv_heads * layers[i].head_dim;
    const auto& qkv = block->attention->qkv->weight;
    const auto& gate_up = block->mlp->gate_up->weight;
    const int64_t width = layers[i].ffn.width;
    for (const NamedTensor& row : {
             NamedTensor{"input_layernorm.weight", block->attention_norm->weight},
             NamedTensor{"self_attn.q_proj.weight", qkv.narrow(0, 0, q_rows)},
             NamedTensor{"self_attn.k_proj.weight", qkv.narrow(0, q_rows, kv_rows)},
             NamedTensor{"self_attn.v_proj.weight", qkv.narrow(0, q_rows + kv_rows, kv_rows)},
             NamedTensor{"self_attn.o_proj.weight", block->attention->out->weight},
             NamedTensor{"post_attention_layernorm.weight", block->mlp_norm->weight},
             NamedTensor{"mlp.gate_proj.weight", gate_up.narrow(0, 0, width)},
             NamedTensor{"mlp.up_proj.weight", gate_up.narrow(0, width, width)},
             NamedTensor{"mlp.down_proj.weight", block->mlp->down->weight},
         })
      rows.push_back({prefix + row.name, row.tensor});
    if (layers[i].qk_norm) {
      rows.push_back({prefix + "self_attn.q_norm.weight", block->attention->q_norm->weight});
      rows.push_back({prefix + "self_attn.k_norm.weight", block->attention->k_norm->weight});
    }
  }
  rows.push_back({"model.norm.weight", decoder->norm->weight});
  if (!decoder->config().tied) rows.push_back({"lm_head.weight", decoder->head->weight});
  return rows;
}

}  // namespace prism
