// The speed of training steps of one model, and where their time goes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/models/model_config.h"
#include "prism/training/recipe.h"

namespace prism {

/// A model, a batch and what turns gradients into steps.
struct TrainingCase {
  std::string name;
  ModelConfig model;  ///< complete
  int64_t rows = 1;   ///< sequences of `model.context` tokens a step
  OptimizerOptions optimizer = {};
  bool recompute = false;  ///< activations, in the backward pass
};

/// tiny, small, small-prism and 357m-2layers, the cases of benchmarks/peers/train_gpt.py; or a recipe's file.
/// @throws InputError for another name, or a recipe that no training can use.
TrainingCase find_training_case(const std::string& name);
/// One forward pass of a recipe's step. A vocabulary size of 0 is that of its data.
/// @throws InputError for a recipe that no training can use.
TrainingCase training_case_of(const Recipe& recipe);

/// What a case takes turns with.
struct TrainingPeer {
  std::string name = "libtorch";           ///< the same model on LibTorch's operations; none: nothing
  std::optional<TrainingCase> other = {};  ///< another case instead, of this name
  std::string dtype = {};                  ///< of its matrix products; empty: as the case it takes turns with
};

/// libtorch, none, or a case. @throws InputError as find_training_case().
TrainingPeer find_training_peer(const std::string& name);

struct TrainingBench {
  std::string dtype = "bf16";  ///< of matrix products
  TrainingPeer peer = {};
  int64_t steps = 8;  ///< counted; two more come before them
  int threads = 1;
};

/// One line of a table, or of JSON.
struct TrainingTiming {
  std::string bench = "training", pass = "step", name, dtype;
  int64_t parameters = 0, batch = 0, tokens = 0;
  double prism_ms = 0;
  std::string peer;
  double peer_ms = 0, ratio = 0, tokens_per_s = 0, first_step_s = 0, peak_share = 0;
  int64_t peak_memory_bytes = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("bench", bench, "training");
    v("pass", pass, "step: forward, backward, clipping and the optimizer");
    v("case", name, "the model");
    v("dtype", dtype, "dtype of matrix products, bf16 or f32");
    v("parameters", parameters, "parameters of the model");
    v("batch", batch, "sequences per step");
    v("tokens", tokens, "tokens per sequence");
    v("prism_ms", prism_ms, "median milliseconds per step");
    v("peer", peer, "what prism is compared with: libtorch, another case, or none");
    v("peer_ms", peer_ms, "median milliseconds of the peer; 0: none");
    v("ratio", ratio, "tokens per second over the peer's; 0: none");
    v("tokens_per_s", tokens_per_s, "training tokens per second of prism");
    v("first_step_s", first_step_s, "seconds of the very first step");
    v("peak_share", peak_share, "share of what the CPU's cores can compute");
    v("peak_memory_bytes", peak_memory_bytes, "peak memory of the process so far, the peer's included");
  }
};

/// Steps on random tokens, each one in turn with one of the peer.
TrainingTiming bench_training(const TrainingCase& measured, const TrainingBench& bench);

/// What one kind of operation takes in a step.
struct OperationTime {
  std::string operation;
  int64_t calls = 0;
  double ms = 0;  ///< of its own, without operations inside it
};

/// The operations of a step, the mean over `steps`, the longest first: prism's own by name, and those of LibTorch that
/// are not part of one.
std::vector<OperationTime> profile_training(const TrainingCase& measured, const TrainingBench& bench);

}  // namespace prism
