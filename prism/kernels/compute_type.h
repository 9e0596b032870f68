// The dtype of matrix products, by name or by what this CPU multiplies fast.
//
//   decoder->set_compute_type(find_compute_type("auto"));
#pragma once

#include <torch/types.h>

#include <string>

namespace prism {

/// "bfloat16", "float32", or "auto": bfloat16 on a GPU and where the CPU has AVX512-BF16 (every CPU with AMX has it
/// too), else float32, because without it a product in bfloat16 takes tens to hundreds of times longer than one in
/// float32.
/// @throws InputError naming the known ones.
torch::ScalarType find_compute_type(const std::string& name, const torch::Device& device = torch::kCPU);

/// "bfloat16", "float32", "float64".
std::string compute_type_name(torch::ScalarType type);

}  // namespace prism
