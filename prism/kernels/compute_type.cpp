#include "prism/kernels/compute_type.h"

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/kernels/simd/isa.h"

namespace prism {

torch::ScalarType find_compute_type(const std::string& name, const torch::Device& device) {
  const bool is_fast = !device.is_cpu() || current_isa() >= Isa::avx512_bf16;
  const std::map<std::string, torch::ScalarType> table = {
      {"auto", is_fast ? torch::kBFloat16 : torch::kFloat}, {"bfloat16", torch::kBFloat16}, {"float32", torch::kFloat}};
  return find_by_name(table, name, "dtype", "dtype of matrix products");
}

std::string compute_type_name(torch::ScalarType type) {
  if (type == torch::kBFloat16) return "bfloat16";
  if (type == torch::kFloat) return "float32";
  PRISM_ASSERT(type == torch::kDouble, "dtype", "unexpected compute type {}.", c10::toString(type));
  return "float64";
}

}  // namespace prism
