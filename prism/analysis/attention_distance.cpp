#include "prism/analysis/attention_distance.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "prism/core/error.h"
#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/models/batch.h"

namespace prism {
namespace {

// B batch, T query positions, S key positions, H query heads, G key/value heads, R query heads of a key/value head,
// D head width

constexpr const char* kOperation = "attention_distance";
/// Scores that exist at a time: 4 MiB of float32, enough to fill a matrix product.
constexpr int64_t kBlockScores = int64_t{1} << 20;

void check_served(const AttentionInput& input) {
  PRISM_CHECK(input.causality == Causality::causal && !input.kv.page_table_BN.defined() &&
                  !input.block_mask.defined() && !input.kept_heads_BH.defined(),
              kOperation,
              "expected causal attention of all heads to whole keys; found {}; leave that out to measure distances.",
              input.causality != Causality::causal ? "attention to later keys"
              : input.kv.page_table_BN.defined()   ? "keys in pages"
              : input.block_mask.defined()         ? "a block mask"
                                                   : "heads that are left out");
}

/// Sequence b of a batch without its padding: no lengths are left. Keys in the type that scores are computed in.
AttentionInput cut_sequence(const AttentionInput& input, int64_t b) {
  const auto length = [b](const torch::Tensor& lengths_B, int64_t all) {
    return lengths_B.defined() ? lengths_B[b].item<int64_t>() : all;
  };
  const int64_t queries = length(input.q_lengths_B, input.q_BTHD.size(1));
  const int64_t keys = length(input.kv_lengths_B, input.kv.k_BGSD.size(2));
  AttentionInput sequence;
  sequence.q_BTHD = input.q_BTHD.narrow(0, b, 1).narrow(1, 0, queries);
  sequence.kv.k_BGSD = input.kv.k_BGSD.narrow(0, b, 1)
                           .narrow(2, 0, keys)
                           .to(input.q_BTHD.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat);
  if (input.documents_BS.defined()) sequence.documents_BS = input.documents_BS.narrow(0, b, 1).narrow(1, 0, keys);
  sequence.scale = input.scale.value_or(1.0 / std::sqrt(static_cast<double>(input.q_BTHD.size(3))));
  return sequence;
}

/// Queries [first, first + count) of a sequence, and the keys up to the last of them: causal attention takes these
/// queries for the last positions, which they then are.
AttentionInput cut_queries(const AttentionInput& sequence, int64_t first, int64_t count) {
  const int64_t past = sequence.kv.k_BGSD.size(2) - sequence.q_BTHD.size(1), keys = past + first + count;
  AttentionInput block = sequence;
  block.q_BTHD = sequence.q_BTHD.narrow(1, first, count);
  block.kv.k_BGSD = sequence.kv.k_BGSD.narrow(2, 0, keys);
  if (sequence.documents_BS.defined()) block.documents_BS = sequence.documents_BS.narrow(1, 0, keys);
  return block;
}

/// sum_s A[t, s] |t - s| summed over the queries of a block. @return [H] float64, on the CPU.
torch::Tensor sum_distances(const AttentionInput& block) {
  const int64_t queries = block.q_BTHD.size(1), head_dim = block.q_BTHD.size(3);
  const int64_t groups = block.kv.k_BGSD.size(1), keys = block.kv.k_BGSD.size(2);
  const int64_t group_heads = block.q_BTHD.size(2) / groups;
  const auto key_S = at::arange(keys, block.kv.k_BGSD.options());
  const auto distance_TS = (key_S.narrow(0, keys - queries, queries).unsqueeze(1) - key_S).abs_();
  const auto hidden_TS = visible_keys(block).view({queries, keys}).logical_not();
  std::vector<torch::Tensor> sums;
  for (int64_t g = 0; g < groups; ++g) {
    // The query heads of a key/value head are rows of one product, so that its keys are read in place.
    const auto q_RTD = block.q_BTHD[0].narrow(1, g * group_heads, group_heads).transpose(0, 1);
    const auto rows_ND = q_RTD.reshape({group_heads * queries, head_dim}).to(key_S.scalar_type()) * *block.scale;
    const auto scores_RTS = at::matmul(rows_ND, block.kv.k_BGSD[0][g].t()).view({group_heads, queries, keys});
    scores_RTS.masked_fill_(hidden_TS, -std::numeric_limits<double>::infinity());
    const auto distance_RT = at::softmax(scores_RTS, -1).mul_(distance_TS).sum(-1);
    sums.push_back(distance_RT.sum(1, /*keepdim=*/false, torch::kDouble));
  }
  return at::cat(sums).cpu();
}

}  // namespace

AttentionDistanceProbe::AttentionDistanceProbe(const std::vector<LayerConfig>& layers) {
  for (const auto& layer : layers) layers_.push_back({layer.head_dim, torch::zeros({layer.heads}, torch::kDouble)});
}

void AttentionDistanceProbe::observe(size_t layer, const AttentionInput& input) {
  check_served(input);
  PRISM_ASSERT(layer < layers_.size() && input.q_BTHD.size(2) == layers_[layer].sum_H.size(0), kOperation,
               "layer {} with {} heads is none of this model's.", layer, input.q_BTHD.size(2));
  const torch::NoGradGuard no_gradients;
  const bool ends_the_pass = layer + 1 == layers_.size();
  for (int64_t b = 0; b < input.q_BTHD.size(0); ++b) {
    const AttentionInput sequence = cut_sequence(input, b);
    const int64_t queries = sequence.q_BTHD.size(1), keys = sequence.kv.k_BGSD.size(2);
    if (keys == 0) continue;
    const int64_t group_heads = sequence.q_BTHD.size(2) / sequence.kv.k_BGSD.size(1);
    const int64_t rows = std::max<int64_t>(1, kBlockScores / (group_heads * keys));
    // Query t stands at position t + keys - queries.
    const int64_t first = std::max<int64_t>(0, keys / 2 - (keys - queries));
    for (int64_t at = first; at < queries; at += rows)
      layers_[layer].sum_H += sum_distances(cut_queries(sequence, at, std::min(rows, queries - at)));
    if (!ends_the_pass) continue;
    ++sequences_;
    context_ = std::max(context_, keys);
    queries_ += queries - first;
  }
}

AttentionDistance AttentionDistanceProbe::result() const {
  PRISM_CHECK(queries_ > 0, kOperation, "expected sequences to look at; found none; run the model on some.");
  AttentionDistance result{{}, sequences_, context_, queries_};
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto mean_H = layers_[i].sum_H / static_cast<double>(queries_);
    const double* means = mean_H.const_data_ptr<double>();
    LayerDistance& layer = result.layers.emplace_back();
    layer.head_distances.assign(means, means + mean_H.size(0));
    const Statistic over_heads = statistic(layer.head_distances);
    layer.layer = static_cast<int64_t>(i);
    layer.heads = over_heads.count;
    layer.head_dim = layers_[i].head_dim;
    layer.distance = over_heads.mean;
    layer.distance_sd = over_heads.deviation;
  }
  return result;
}

std::optional<AttentionDistance> measure_attention_distance(Decoder decoder, WindowLoader windows, int64_t sequences,
                                                            const std::function<void(int64_t)>& on_progress) {
  PRISM_CHECK(sequences >= 1, kOperation, "expected at least 1 sequence; found {}; ask for more.", sequences);
  const torch::NoGradGuard no_gradients;
  AttentionDistanceProbe probe(decoder->config().layers);
  sequences = std::min(sequences, windows.windows_per_epoch() - windows.position());
  for (int64_t done = 0; done < sequences;) {
    if (stop_signal() != 0) return std::nullopt;
    Batch batch = windows.next();
    batch.rows = std::min(batch.rows, sequences - done);  // the rest of the last batch is not asked for
    BatchTensors tensors(batch);
    tensors.context.probe = &probe;
    decoder(tensors.tokens_BT, tensors.context);
    done += batch.rows;
    if (on_progress) on_progress(done);
  }
  return probe.result();
}

}  // namespace prism
