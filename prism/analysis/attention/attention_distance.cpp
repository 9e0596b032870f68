#include "prism/analysis/attention/attention_distance.h"

#include <ATen/Functions.h>

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/models/batch.h"

namespace prism {
namespace {

/// sum_s A[t, s] |t - s|.
torch::Tensor distance_of_rows(const AttentionRows& rows) {
  const int64_t queries = rows.weights_RTS.size(1), keys = rows.weights_RTS.size(2);
  const auto key_S = at::arange(keys, rows.weights_RTS.options());
  const auto distance_TS = (key_S.narrow(0, rows.first_position, queries).unsqueeze(1) - key_S).abs_();
  return (rows.weights_RTS * distance_TS).sum(-1);
}

}  // namespace

AttentionDistanceProbe::AttentionDistanceProbe(const std::vector<LayerConfig>& layers)
    : HeadMeansProbe(layers, QueryRange::last_half, {distance_of_rows}, "attention_distance") {}

AttentionDistance AttentionDistanceProbe::result() const {
  AttentionDistance result{{}, sequences(), context(), queries()};
  for (const auto& head_distances : means(0)) {
    const Statistic over_heads = statistic(head_distances);
    LayerDistance& layer = result.layers.emplace_back();
    layer.layer = static_cast<int64_t>(result.layers.size()) - 1;
    layer.heads = over_heads.count;
    layer.head_dim = layers()[static_cast<size_t>(layer.layer)].head_dim;
    layer.head_distances = head_distances;
    layer.distance = over_heads.mean;
    layer.distance_sd = over_heads.deviation;
  }
  return result;
}

std::optional<AttentionDistance> measure_attention_distance(Decoder decoder, WindowLoader windows, int64_t sequences,
                                                            const std::function<void(int64_t)>& on_progress) {
  PRISM_CHECK(sequences >= 1, "attention_distance", "expected at least 1 sequence; found {}; ask for more.", sequences);
  const torch::NoGradGuard no_gradients;
  AttentionDistanceProbe probe(decoder->config().layers);
  sequences = std::min(sequences, windows.windows_per_epoch() - windows.position());
  for (int64_t done = 0; done < sequences;) {
    if (stop_signal() != 0) return std::nullopt;
    Batch batch = windows.next();
    batch.rows = std::min(batch.rows, sequences - done);  // the last batch may have more rows than needed
    BatchTensors tensors(batch);
    if (layers_with_budgets(decoder->config()) > 0) tensors.predict_second_halves();
    tensors.context.probe = &probe;
    decoder(tensors.tokens_BT, tensors.context);
    done += batch.rows;
    if (on_progress) on_progress(done);
  }
  return probe.result();
}

}  // namespace prism
