#include "prism/kernels/flash/isa.h"

#include <cstdlib>

#include "prism/core/error.h"
#include "prism/core/names.h"

namespace prism {
namespace {

const std::map<std::string, Isa>& names() {
  static const std::map<std::string, Isa> table = {
      {"portable", Isa::portable}, {"avx2", Isa::avx2}, {"avx512", Isa::avx512}, {"avx512-bf16", Isa::avx512_bf16}};
  return table;
}

Isa best_isa() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::portable;
  for (const bool has : {__builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512bw") != 0,
                         __builtin_cpu_supports("avx512dq") != 0, __builtin_cpu_supports("avx512vl") != 0})
    if (!has) return Isa::avx2;
  return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
}

}  // namespace

Isa current_isa() {
  static const Isa best = best_isa();
  const char* wanted = std::getenv("PRISM_ISA");
  if (wanted == nullptr || *wanted == '\0') return best;
  const Isa isa = find_by_name(names(), wanted, "PRISM_ISA", "instruction set");
  PRISM_CHECK(isa <= best, "PRISM_ISA", "expected an instruction set that this processor has, up to {}; found {}.",
              isa_name(best), wanted);
  return isa;
}

std::string isa_name(Isa isa) {
  for (const auto& [name, value] : names())
    if (value == isa) return name;
  throw InternalError("isa", "an instruction set without a name");
}

const flash::Kernels* flash_kernels(Isa isa) {
  switch (isa) {
    case Isa::avx512_bf16:
      return &flash::kAvx512Bf16;
    case Isa::avx512:
      return &flash::kAvx512;
    case Isa::avx2:
      return &flash::kAvx2;
    case Isa::portable:
      return nullptr;
  }
  return nullptr;
}

}  // namespace prism
