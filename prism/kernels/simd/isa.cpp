#include "prism/kernels/simd/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "prism/core/error.h"
#include "prism/core/text/names.h"

namespace prism {
namespace {

const std::map<std::string, Isa>& names() {
  static const std::map<std::string, Isa> table = {{"portable", Isa::portable},       {"avx2", Isa::avx2},
                                                   {"avx512", Isa::avx512},           {"avx512-vnni", Isa::avx512_vnni},
                                                   {"avx512-bf16", Isa::avx512_bf16}, {"amx-bf16", Isa::amx_bf16}};
  return table;
}

/// Returns true if the processor converts float16 (F16C), which clang 14 doesn't know by name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

/// Returns true if the processor has AMX with bfloat16.
bool has_amx() {
  constexpr unsigned kBfloat16 = 1u << 22, kTiles = 1u << 24;  // of leaf 7's edx
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kBfloat16) != 0 && (d & kTiles) != 0;
}

/// Requests permission to use AMX from Linux. The request fails if the kernel is too old, if a sandbox forbids it, or
/// if a thread's signal stack is too small for tiles.
bool allow_amx() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Isa find_best_isa() {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c()) return Isa::portable;
  for (const bool has : {__builtin_cpu_supports("avx512f") != 0, __builtin_cpu_supports("avx512bw") != 0,
                         __builtin_cpu_supports("avx512dq") != 0, __builtin_cpu_supports("avx512vl") != 0})
    if (!has) return Isa::avx2;
  if (!__builtin_cpu_supports("avx512vnni")) return Isa::avx512;
  if (!__builtin_cpu_supports("avx512bf16")) return Isa::avx512_vnni;
  return has_amx() && allow_amx() ? Isa::amx_bf16 : Isa::avx512_bf16;
}

Isa checked(Isa isa) {
  PRISM_CHECK(isa <= best_isa(), "PRISM_ISA",
              "expected an instruction set that this {} has, up to {}; found {}; choose one of these.",
              is_amx_refused() ? "process may use, of those its processor" : "processor", isa_name(best_isa()),
              isa_name(isa));
  return isa;
}

constexpr int kNone = -1;
std::atomic<int> scoped = kNone;

}  // namespace

Isa best_isa() {
  static const Isa best = find_best_isa();
  return best;
}

Isa fastest_isa() {
  const bool has_slow_pairs = best_isa() == Isa::avx512_bf16 && __builtin_cpu_is("intel");
  return has_slow_pairs ? Isa::avx512_vnni : best_isa();
}

bool is_amx_refused() {
  return best_isa() == Isa::avx512_bf16 && has_amx();
}

Isa current_isa() {
  if (const int isa = scoped; isa != kNone) return static_cast<Isa>(isa);
  const char* wanted = std::getenv("PRISM_ISA");
  if (wanted == nullptr || *wanted == '\0') return fastest_isa();
  return checked(find_by_name(names(), wanted, "PRISM_ISA", "instruction set"));
}

IsaScope::IsaScope(Isa isa) : before_(scoped.exchange(static_cast<int>(checked(isa)))) {}

IsaScope::~IsaScope() {
  scoped = before_;
}

std::string isa_name(Isa isa) {
  for (const auto& [name, value] : names())
    if (value == isa) return name;
  throw InternalError("isa", "unknown instruction set");
}

}  // namespace prism
