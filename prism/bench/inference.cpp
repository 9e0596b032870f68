#include "prism/bench/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "prism/bench/measure.h"
#include "prism/core/error.h"
#include "prism/core/random.h"
#include "prism/evaluation/classification.h"
#include "prism/models/chunks.h"
#include "prism/models/cost.h"

namespace prism {
namespace {

std::vector<int64_t> random_tokens(const ModelConfig& config, int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<int64_t> tokens(static_cast<size_t>(count));
  std::generate(tokens.begin(), tokens.end(),
                [&] { return static_cast<int64_t>(random.below(static_cast<uint64_t>(config.vocab_size))); });
  return tokens;
}

/// A test with its cache and its tokens.
class InferenceTest {
 public:
  InferenceTest(Decoder decoder, const InferenceBench& bench, const InferenceTiming& row, bool decodes)
      : decoder_(std::move(decoder)),
        prefill_(bench.prefill, bench.costs),
        tokens_BT_(torch::tensor(random_tokens(decoder_->config(), row.depth + row.tokens, bench.seed)).unsqueeze(0)),
        depth_(row.depth),
        sequences_(row.sequences),
        decodes_(decodes),
        cache_(decoder_->config().layers, {.sequences = row.sequences,
                                           .positions = row.depth + row.tokens,
                                           .type = bench.cache_type.value_or(decoder_->compute_type()),
                                           .device = decoder_->device()}) {
    if (row.depth > 0)
      for (int64_t sequence = 0; sequence < sequences_; ++sequence) read(sequence, 0, row.depth);
  }

  void run() {
    for (int64_t sequence = 0; sequence < sequences_; ++sequence) cache_.truncate(depth_, sequence);
    if (!decodes_) return read(0, depth_, tokens_BT_.size(1) - depth_);
    const torch::NoGradGuard no_gradients;
    ForwardContext context;
    context.cache = &cache_;
    for (int64_t sequence = 0; sequence < sequences_; ++sequence)
      context.rows.push_back({.sequence = sequence, .tokens = 1, .decodes = true});
    for (int64_t i = depth_; i < tokens_BT_.size(1); ++i)
      decoder_->head.logits(decoder_(tokens_BT_.narrow(1, i, 1).expand({1, sequences_}), context));
  }

 private:
  void read(int64_t sequence, int64_t first, int64_t count) {
    const torch::NoGradGuard no_gradients;
    ForwardContext context;
    context.cache = &cache_;
    context.prefill = prefill_for(decoder_->config(), &prefill_);
    context.rows = {{.sequence = sequence, .tokens = count}};
    const auto hidden_BTD =
        forward_in_chunks(decoder_, tokens_BT_.narrow(1, first, count), context, prefill_.options().chunk);
    decoder_->head.logits(hidden_BTD.narrow(1, hidden_BTD.size(1) - 1, 1));
  }

  Decoder decoder_;
  Prefill prefill_;
  torch::Tensor tokens_BT_;
  int64_t depth_, sequences_;
  bool decodes_;
  KvCache cache_;
};

int64_t weight_bytes(const Weight& weight, torch::ScalarType type) {
  if (weight.packed() != nullptr) return weight.packed()->bytes();
  return weight.numel() * static_cast<int64_t>(c10::elementSize(type));
}

/// Bytes of the weights that a token's pass reads. Of an embedding that is not tied it reads one row.
int64_t weight_bytes_read(const DecoderImpl& decoder) {
  int64_t sum = 0;
  for (const auto& entry : decoder.weights())
    if (entry.products() > 0 && !entry.traits.training_only) sum += weight_bytes(entry.weight, decoder.compute_type());
  return sum;
}

/// FLOPs of the pass over a prompt with dense attention, with logits for its last token; or over a text, whose logits
/// count as 0.
double prompt_flops(const Trunk& model, int64_t tokens) {
  auto config = model.config();
  config.context = tokens;
  const auto cost = model_cost(config);
  double flops = 0;
  for (const auto& layer : cost.layers) flops += static_cast<double>(layer.flops_per_token * tokens);
  for (const auto& part : cost.outside) flops += static_cast<double>(part.flops_per_token);
  return flops;
}

/// Bytes of keys and values that decoding `tokens` tokens after `depth` reads.
double cache_bytes(const DecoderImpl& decoder, torch::ScalarType type, int64_t tokens, int64_t depth) {
  const auto per_position = static_cast<double>(kv_cache_bytes(decoder.config().layers, 1, type));
  const auto count = static_cast<double>(tokens);
  return per_position * count * (static_cast<double>(depth) + (count + 1) / 2);
}

InferenceTiming decoding_row(int64_t tokens, int64_t depth, int64_t sequences) {
  return {.name = fmt::format("tg{}{}{}", tokens, sequences > 1 ? fmt::format("x{}", sequences) : "",
                              depth > 0 ? fmt::format("@d{}", depth) : ""),
          .tokens = tokens,
          .depth = depth,
          .sequences = sequences};
}

/// Bytes of the activations of one layer for a token, about: the stream, and the widest products.
double activation_bytes(const ClassifierImpl& classifier) {
  const auto& config = classifier.config();
  int64_t widest = 0;
  for (const auto& layer : config.layers)
    widest = std::max({widest, (layer.heads + 2 * layer.kv_heads) * layer.head_dim, layer.ffn.width});
  const auto bytes = static_cast<int64_t>(c10::elementSize(classifier.compute_type()));
  return static_cast<double>(config.d_model * static_cast<int64_t>(sizeof(float)) + (config.d_model + widest) * bytes);
}

void check_texts(const ClassifierImpl& classifier, int64_t tokens, int64_t texts) {
  const int64_t context = classifier.config().context;
  PRISM_CHECK(tokens >= 1 && tokens <= context, "bench",
              "expected texts of 1 to {} tokens, the model's context; found {}; choose other lengths.", context,
              tokens);
  PRISM_CHECK(texts >= 1 && texts <= 65536, "bench",
              "--sequences: expected 1 to 65536 texts in a batch; found {}; change it.", texts);
  check_tensors_fit(static_cast<double>(tokens * texts) * activation_bytes(classifier),
                    fmt::format("the activations of {} texts of {} tokens", texts, tokens));
}

/// A batch of texts of the same length.
ExampleBatch random_batch(const ModelConfig& config, const InferenceTiming& row, uint64_t seed) {
  ExampleBatch batch;
  batch.rows = row.sequences;
  batch.width = row.tokens;
  batch.tokens = random_tokens(config, batch.rows * batch.width, seed);
  batch.lengths.assign(static_cast<size_t>(batch.rows), static_cast<int32_t>(batch.width));
  return batch;
}

}  // namespace

std::vector<InferenceTiming> bench_inference(Decoder decoder, const InferenceBench& bench) {
  const ModelConfig& config = decoder->config();
  check_prefill(config, bench.prefill);
  std::vector<std::unique_ptr<InferenceTest>> tests;
  std::vector<std::function<void()>> calls;
  std::vector<InferenceTiming> rows;
  const auto type = bench.cache_type.value_or(decoder->compute_type());
  int64_t cached_positions = 0;  // of all tests
  const auto add = [&](InferenceTiming row, bool decodes) {
    PRISM_CHECK(row.tokens >= 1 && row.depth >= 0 && row.depth + row.tokens <= config.context, "bench",
                "expected at least 1 token, and at most {} with those before, the model's context; found {} after {}; "
                "choose other lengths.",
                config.context, row.tokens, row.depth);
    PRISM_CHECK(row.sequences >= 1, "bench", "--sequences: expected at least 1; found {}; raise it.", row.sequences);
    cached_positions += row.sequences * KvCache::pages_for(row.depth + row.tokens) * KvCache::kPage;
    check_tensors_fit(static_cast<double>(kv_cache_bytes(config.layers, cached_positions, type)),
                      fmt::format("the keys and values of {} positions", cached_positions));
    tests.push_back(std::make_unique<InferenceTest>(decoder, bench, row, decodes));
    calls.emplace_back([test = tests.back().get()] { test->run(); });
    rows.push_back(std::move(row));
  };
  for (const int64_t tokens : bench.prompt_tokens) add({.name = fmt::format("pp{}", tokens), .tokens = tokens}, false);
  const size_t prompts = rows.size();
  if (bench.new_tokens > 0)
    for (const int64_t depth : bench.depths)
      for (const int64_t sequences : bench.sequences) add(decoding_row(bench.new_tokens, depth, sequences), true);
  const auto medians = medians_in_turn(calls, bench.rounds);
  const double bandwidth = bench.new_tokens > 0 ? read_bandwidth(bench.threads) : 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& row = rows[i];
    const double seconds = medians[i] * 1e-3;
    row.ms = medians[i];
    row.tokens_per_s = static_cast<double>(row.tokens * row.sequences) / seconds;
    if (i < prompts) {
      row.work = prompt_flops(*decoder, row.tokens);
      row.limit_share = share_of_peak(row.work / seconds, bench.threads, decoder->compute_type());
    } else {
      row.work = static_cast<double>(row.tokens * weight_bytes_read(*decoder)) +
                 static_cast<double>(row.sequences) * cache_bytes(*decoder, type, row.tokens, row.depth);
      row.limit_share = row.work / seconds / bandwidth;
    }
  }
  return rows;
}

std::vector<InferenceTiming> bench_texts(const Classifier& classifier, const TextBench& bench) {
  const ModelConfig& config = classifier->config();
  std::vector<std::function<void()>> calls;
  std::vector<InferenceTiming> rows;
  for (const int64_t tokens : bench.tokens)
    for (const int64_t texts : bench.texts) {
      check_texts(*classifier, tokens, texts);
      const auto& row = rows.emplace_back(
          InferenceTiming{.name = fmt::format("text{}{}", tokens, texts > 1 ? fmt::format("x{}", texts) : ""),
                          .tokens = tokens,
                          .sequences = texts});
      calls.emplace_back([&classifier, batch = random_batch(config, row, bench.seed)]() mutable {
        classify(classifier, ExampleTensors(batch));
      });
    }
  const auto medians = medians_in_turn(calls, bench.rounds);
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& row = rows[i];
    const double seconds = medians[i] * 1e-3;
    row.ms = medians[i];
    row.tokens_per_s = static_cast<double>(row.tokens * row.sequences) / seconds;
    row.work = static_cast<double>(row.sequences) * prompt_flops(*classifier, row.tokens);
    row.limit_share = share_of_peak(row.work / seconds, bench.threads, classifier->compute_type());
  }
  return rows;
}

}  // namespace prism
