// Grafting: gives a trained model gates within its gates without changing what it computes.
//
//   ModelFolder model = load_model("runs/swiglu", torch::kFloat);
//   Decoder grafted(graft_config(model.decoder->config()));
//   copy_grafted(*model.decoder, *grafted);
#pragma once

#include "prism/models/trunk.h"

namespace prism {

/// b with silu(b) = b / (1 + exp(-b)) = 1.
constexpr double kOpenGate = 1.278464542761074;

/// The config with all feed-forward parts of kind swiglu turned into g2lu with a bias in the inner gate.
/// @throws InputError if no layer is of kind swiglu.
ModelConfig graft_config(ModelConfig config);

/// Copies the weights of a model into one of its graft_config(). The inner gates are open for all tokens:
/// W_inner = 0 and b = kOpenGate, so that silu(W_gate x * silu(W_inner x + b)) = silu(W_gate x). The logits are the
/// same up to rounding, and W_inner has a gradient. Source: Prisma's model card (grafting); the value of b is ours.
void copy_grafted(const Trunk& model, const Trunk& grafted);

}  // namespace prism
