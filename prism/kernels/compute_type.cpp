#include "prism/kernels/compute_type.h"

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/kernels/simd/isa.h"

namespace prism {

torch::ScalarType find_compute_type(const std::string& given, const torch::Device& device) {
  static const std::map<std::string, std::string> short_names = {{"bf16", "bfloat16"}, {"f32", "float32"}};
  const auto short_name = short_names.find(given);
  const std::string& name = short_name == short_names.end() ? given : short_name->second;
  const bool is_fast = !device.is_cpu() || current_isa() >= Isa::avx512_vnni;
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
