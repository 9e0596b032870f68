#include "prism/checkpoint/weight_map.h"

#include "prism/core/error.h"

namespace prism {
namespace {

/// Rows of a table; parts that a model does not have are left out.
class WeightTable {
 public:
  void add(const std::string& name, const torch::Tensor& tensor) {
    if (tensor.defined()) rows_.push_back({name, tensor});
  }
  void add(const std::string& name, const RmsNorm& norm) {
    if (norm) add(name + ".weight", norm->weight);
  }
  void add(const std::string& name, const Linear& linear) {
    if (!linear) return;
    add(name + ".weight", linear->weight);
    add(name + ".bias", linear->bias);
  }
  std::vector<NamedTensor> take() { return std::move(rows_); }

 private:
  std::vector<NamedTensor> rows_;
};

void add_attention(WeightTable& table, const std::string& prefix, const Attention& attention,
                   const LayerConfig& layer) {
  const int64_t q_rows = layer.heads * layer.head_dim, kv_rows = layer.kv_heads * layer.head_dim;
  const auto& qkv = attention->qkv->weight;
  table.add(prefix + "q_proj.weight", qkv.narrow(0, 0, q_rows));
  table.add(prefix + "k_proj.weight", qkv.narrow(0, q_rows, kv_rows));
  table.add(prefix + "v_proj.weight", qkv.narrow(0, q_rows + kv_rows, kv_rows));
  table.add(prefix + "o_proj", attention->out);
}

void add_mlp(WeightTable& table, const std::string& prefix, const Mlp& mlp, const FfnConfig& ffn) {
  if (mlp->gate_up) {
    table.add(prefix + "gate_proj.weight", mlp->gate_up->weight.narrow(0, 0, ffn.width));
    table.add(prefix + "up_proj.weight", mlp->gate_up->weight.narrow(0, ffn.width, ffn.width));
  }
  for (size_t i = 0; i < mlp->inner.size(); ++i)
    table.add(prefix + (i == 0 ? "up_proj" : fmt::format("hidden_proj_{}", i)), mlp->inner[i]);
  table.add(prefix + "down_proj", mlp->down);
}

}  // namespace

std::vector<NamedTensor> llama_weights(Decoder decoder) {
  const auto& layers = decoder->config().layers;
  WeightTable table;
  table.add("model.embed_tokens.weight", decoder->embedding->weight);
  if (decoder->positions) table.add("model.embed_positions.weight", decoder->positions->weight);
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto& block = decoder->blocks[i];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    table.add(prefix + "input_layernorm", block->attention_norm);
    add_attention(table, prefix + "self_attn.", block->attention, layers[i]);
    table.add(prefix + "post_attention_layernorm", block->mlp_norm);
    add_mlp(table, prefix + "mlp.", block->mlp, layers[i].ffn);
    table.add(prefix + "self_attn.q_norm", block->attention->q_norm);
    table.add(prefix + "self_attn.k_norm", block->attention->k_norm);
  }
  table.add("model.norm", decoder->norm);
  if (!decoder->config().tied) table.add("lm_head", decoder->head);
  return table.take();
}

}  // namespace prism
