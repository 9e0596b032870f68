#include "prism/kernels/simd/isa.h"

#include <atomic>
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

Isa find_best_isa() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::portable;
  for (const bool has : {__builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512bw") != 0,
                         __builtin_cpu_supports("avx512dq") != 0, __builtin_cpu_supports("avx512vl") != 0})
    if (!has) return Isa::avx2;
  return __builtin_cpu_supports("avx512bf16") ? Isa::avx512_bf16 : Isa::avx512;
}

Isa best_isa() {
  static const Isa best = find_best_isa();
  return best;
}

Isa checked(Isa isa) {
  PRISM_CHECK(isa <= best_isa(), "PRISM_ISA",
              "expected an instruction set that this processor has, up to {}; found {}; choose one of these.",
              isa_name(best_isa()), isa_name(isa));
  return isa;
}

constexpr int kNone = -1;
std::atomic<int> scoped = kNone;

}  // namespace

Isa current_isa() {
  if (const int isa = scoped; isa != kNone) return static_cast<Isa>(isa);
  const char* wanted = std::getenv("PRISM_ISA");
  if (wanted == nullptr || *wanted == '\0') return best_isa();
  return checked(find_by_name(names(), wanted, "PRISM_ISA", "instruction set"));
}

IsaScope::IsaScope(Isa isa) : before_(scoped.exchange(static_cast<int>(checked(isa)))) {}

IsaScope::~IsaScope() {
  scoped = before_;
}

std::string isa_name(Isa isa) {
  for (const auto& [name, value] : names())
    if (value == isa) return name;
  throw InternalError("isa", "an instruction set without a name");
}

}  // namespace prism
