// The dtype of matrix products, chosen by name or by what is fast on this machine.
//
//   decoder->set_compute_type(find_compute_type("auto"));
#pragma once

#include <torch/types.h>

#include <string>

namespace prism {

/// @param name  "bfloat16", "float32" or "auto"; "bf16" and "f32" are accepted. auto: bfloat16 on a GPU or a CPU with
///              AVX512-VNNI, where prism keeps caches and packed weights in bfloat16, else float32.
/// @throws InputError for an unknown name; the message lists the known ones.
torch::ScalarType find_compute_type(const std::string& name, const torch::Device& device = torch::kCPU);

/// "bfloat16", "float32" or "float64".
std::string compute_type_name(torch::ScalarType type);

}  // namespace prism
