// Times a model's inference, as a share of the machine's limit: a language model reads prompts and decodes one token at
// a time; a classifier labels texts.
//
//   for (const auto& row : bench_inference(model.decoder, {.prompt_tokens = {512, 2048}, .new_tokens = 128})) ...
//   for (const auto& row : bench_texts(model.classifier, {.tokens = {128, 512}, .texts = {1, 32}})) ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/attention/prefill.h"
#include "prism/models/classifier.h"
#include "prism/models/decoder.h"

namespace prism {

struct InferenceBench {
  std::vector<int64_t> prompt_tokens = {512, 2048};  ///< lengths of the prompts to read; 0: none
  int64_t new_tokens = 128;                          ///< to decode; 0: none
  std::vector<int64_t> depths = {0};                 ///< tokens that are cached before the decoding begins
  std::vector<int64_t> sequences = {1};              ///< decoded at once
  PrefillOptions prefill;                            ///< how prompts are read
  PrefillCosts costs;                                ///< as Prefill takes them
  std::optional<torch::ScalarType> cache_type;       ///< of keys and values; std::nullopt: of products
  int64_t rounds = 5;
  uint64_t seed = 1;  ///< of the random tokens
  int threads = 1;
};

struct TextBench {
  std::vector<int64_t> tokens = {512};  ///< lengths of the texts
  std::vector<int64_t> texts = {32};    ///< in a batch
  int64_t rounds = 5;
  uint64_t seed = 1;  ///< of the random tokens
  int threads = 1;
};

/// Named as by llama-bench.
struct InferenceTiming {
  /// pp512: a prompt of 512 tokens; tg128@d4096: 128 tokens after 4096; tg128x32: of 32 sequences; text128x32: a batch
  /// of 32 texts of 128 tokens
  std::string name;
  int64_t tokens = 0, depth = 0, sequences = 1;
  double ms = 0, tokens_per_s = 0, limit_share = 0, work = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("name", name,
      "pp512: reading a prompt of 512 tokens; tg128@d4096: decoding 128 tokens after 4096; tg128x32: decoding 32 "
      "sequences at once; text128x32: labelling 32 texts of 128 tokens");
    v("tokens", tokens, "tokens of each sequence that are read or decoded");
    v("depth", depth, "tokens that are cached before");
    v("sequences", sequences, "sequences that are decoded at once, or texts that are labelled at once");
    v("ms", ms, "median milliseconds of one round");
    v("tokens_per_s", tokens_per_s, "tokens of all sequences over that time");
    v("limit_share", limit_share,
      "speed as a share of the limit: of matrix products for prompts and texts, of reading memory for decoding");
    v("work", work, "FLOPs of a prompt, or of the texts; bytes that decoding must read: weights, keys and values");
  }
};

/// The engine computes the rows (generation/engine.h), as for `prism generate`. The tests take turns, so that other
/// work on the machine affects all of them. The next token of decoding is a random one: which it is makes no difference
/// to the time, and no test pays for sampling.
/// @throws InputError for lengths that exceed the context, a depth with head budgets, and as check_prefill().
std::vector<InferenceTiming> bench_inference(Decoder decoder, const InferenceBench& bench);

/// Times a classifier as `prism classify` computes: batches of texts of equal length, in turn. The limit is that of
/// matrix products; the FLOPs are those of all heads, also where head budgets leave heads out.
/// @throws InputError for lengths that exceed the context, and batches that do not fit into memory.
std::vector<InferenceTiming> bench_texts(const Classifier& classifier, const TextBench& bench);

}  // namespace prism
