// Times training steps of one model, and profiles their operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/models/model_config.h"
#include "prism/training/recipe.h"

namespace prism {

/// A model, a batch and an optimizer.
struct TrainingCase {
  std::string name;
  ModelConfig model;  ///< complete
  int64_t rows = 1;   ///< sequences of `model.context` tokens per step
  OptimizerOptions optimizer = {};
  bool recompute = false;  ///< recompute activations in the backward pass
};

/// The case of that name: tiny, small, small-prism or 357m-2layers (as in benchmarks/peers/train_gpt.py), or a recipe
/// file.
/// @throws InputError for another name, or a recipe that cannot be trained.
TrainingCase find_training_case(const std::string& name);
/// The case of a recipe, with one batch of a step. A vocabulary size of 0 means that of its data.
/// @throws InputError for a recipe that cannot be trained.
TrainingCase training_case_of(const Recipe& recipe);

/// What a case is compared with.
struct TrainingPeer {
  std::string name = "libtorch";           ///< libtorch: the same model on LibTorch's operations; none: no peer
  std::optional<TrainingCase> other = {};  ///< another case instead; `name` is its name
  std::string dtype = {};                  ///< dtype of its matrix products; empty: as the measured case
};

/// The peer of that name: libtorch, none, or a case. @throws InputError as find_training_case().
TrainingPeer find_training_peer(const std::string& name);

struct TrainingBench {
  std::string dtype = "bfloat16";  ///< dtype of matrix products
  TrainingPeer peer = {};
  int64_t steps = 8;  ///< counted steps, after two warm-up steps
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
    v("dtype", dtype, "dtype of matrix products, bfloat16 or float32");
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

/// Times steps on random tokens, in turn with steps of the peer.
TrainingTiming bench_training(const TrainingCase& measured, const TrainingBench& bench);

/// The time of one kind of operation in a step.
struct OperationTime {
  std::string operation;
  int64_t calls = 0;
  double ms = 0;  ///< own time, without nested operations
};

/// The operations of a step, averaged over `steps`, the longest first. LibTorch's operations inside one of prism's
/// count towards that one; all others are listed by name.
std::vector<OperationTime> profile_training(const TrainingCase& measured, const TrainingBench& bench);

}  // namespace prism
