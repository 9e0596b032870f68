#include "prism/bench/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "prism/bench/measure.h"
#include "prism/core/error.h"
#include "prism/core/random.h"
#include "prism/evaluation/classification.h"
#include "prism/generation/engine.h"
#include "prism/models/cost.h"
#include "prism/models/prompt_checks.h"

namespace prism {
namespace {

constexpr int64_t kMostSequences = 65536;

template <class Id>
std::vector<Id> random_tokens(const ModelConfig& config, int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<Id> tokens(static_cast<size_t>(count));
  std::generate(tokens.begin(), tokens.end(),
                [&] { return static_cast<Id>(random.below(static_cast<uint64_t>(config.vocab_size))); });
  return tokens;
}

/// A row, computed as `prism generate` does: a prompt up to its first new token, or tokens that are decoded.
class InferenceTest {
 public:
  InferenceTest(const Decoder& decoder, const InferenceBench& bench, const InferenceTiming& row, bool decodes)
      : prefill_(bench.prefill, bench.costs),
        // What decoding takes does not depend on how the tokens before were read.
        engine_(
            decoder,
            {.sequences = row.sequences + 1, .prefill = decodes ? nullptr : &prefill_, .cache_type = bench.cache_type}),
        tokens_(random_tokens<int32_t>(decoder->config(), row.depth + row.tokens, bench.seed)),
        depth_(row.depth),
        sequences_(row.sequences),
        decodes_(decodes) {
    engine_.make_room(sequences_ * KvCache::pages_for(row.depth + row.tokens) + KvCache::pages_for(depth_));
    if (depth_ == 0) return;
    PRISM_CHECK(engine_.can_share(), "bench",
                "--depth: expected 0 for a model with head budgets, which decide by whole prompts; found {}; lower it.",
                depth_);
    before_ = engine_.submit({.tokens = first_tokens(depth_), .keeps = true});
    finish();
  }

  void run() {
    for (int64_t i = 0; i < sequences_; ++i) depth_ == 0 ? engine_.submit(request()) : engine_.fork(before_, request());
    finish();
  }

 private:
  std::vector<int32_t> first_tokens(int64_t count) const { return {tokens_.begin(), tokens_.begin() + count}; }

  EngineRequest request() const {
    if (!decodes_) return {.tokens = tokens_, .next = [](std::span<const float>) { return std::nullopt; }};
    // The first token is given as a prompt that is decoded; each step then gives the next one.
    return {.tokens = first_tokens(depth_ + 1),
            .next = [this, next = depth_ + 1](std::span<const float>) mutable -> std::optional<int32_t> {
              if (next == std::ssize(tokens_)) return std::nullopt;
              return tokens_[static_cast<size_t>(next++)];
            },
            .decodes_prompt = true};
  }

  void finish() {
    const torch::NoGradGuard no_gradients;
    while (!engine_.is_idle()) engine_.step();
  }

  Prefill prefill_;
  Engine engine_;
  std::vector<int32_t> tokens_;
  int64_t depth_, sequences_, before_ = -1;
  bool decodes_;
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
  PRISM_CHECK(texts >= 1 && texts <= kMostSequences, "bench",
              "--sequences: expected 1 to {} texts in a batch; found {}; change it.", kMostSequences, texts);
  check_tensors_fit(static_cast<double>(tokens * texts) * activation_bytes(classifier),
                    fmt::format("the activations of {} texts of {} tokens", texts, tokens));
}

/// A batch of texts of the same length.
ExampleBatch random_batch(const ModelConfig& config, const InferenceTiming& row, uint64_t seed) {
  ExampleBatch batch;
  batch.rows = row.sequences;
  batch.width = row.tokens;
  batch.tokens = random_tokens<int64_t>(config, batch.rows * batch.width, seed);
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
    PRISM_CHECK(row.tokens >= 1 && row.depth >= 0 && row.depth <= config.context - row.tokens, "bench",
                "expected at least 1 token, and at most {} with those before, the model's context; found {} after {}; "
                "choose other lengths.",
                config.context, row.tokens, row.depth);
    PRISM_CHECK(row.sequences >= 1 && row.sequences <= kMostSequences, "bench",
                "--sequences: expected 1 to {}; found {}; change it.", kMostSequences, row.sequences);
    cached_positions +=
        (row.sequences * KvCache::pages_for(row.depth + row.tokens) + KvCache::pages_for(row.depth)) * KvCache::kPage;
    check_tensors_fit(static_cast<double>(kv_cache_bytes(config.layers, cached_positions, type)),
                      fmt::format("the keys and values of {} positions", cached_positions));
    tests.push_back(std::make_unique<InferenceTest>(decoder, bench, row, decodes));
    calls.emplace_back([test = tests.back().get()] { test->run(); });
    rows.push_back(std::move(row));
  };
  for (const int64_t tokens : bench.prompt_tokens)
    if (tokens != 0) add({.name = fmt::format("pp{}", tokens), .tokens = tokens}, false);
  const size_t prompts = rows.size();
  if (bench.new_tokens > 0)
    for (const int64_t depth : bench.depths)
      for (const int64_t sequences : bench.sequences) add(decoding_row(bench.new_tokens, depth, sequences), true);
  PRISM_CHECK(!rows.empty(), "bench",
              "expected prompts to read or tokens to decode; found neither; raise --prompt-tokens or --new-tokens.");
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
