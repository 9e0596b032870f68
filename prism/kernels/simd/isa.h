// The instruction set of the kernels that prism runs: the fastest one of the processor, or the one PRISM_ISA names.
#pragma once

#include <string>

#include "prism/core/error.h"

namespace prism {

enum class Isa { portable, avx2, avx512, avx512_vnni, avx512_bf16, amx_bf16 };

/// The instruction set in use. PRISM_ISA (portable, avx2, avx512, avx512-vnni, avx512-bf16, amx-bf16) selects another
/// one, to compare instruction sets or to reproduce the results of another machine.
/// @throws InputError if PRISM_ISA is unknown, or this process cannot use it.
Isa current_isa();
std::string isa_name(Isa isa);

/// The best instruction set that the processor has and Linux lets this process use. The first call requests AMX from
/// Linux for all threads; from then on signal handlers need 8 KiB more stack.
Isa best_isa();
/// The fastest instruction set up to best_isa(). Intel's processors multiply bfloat16 pairs with AVX512-BF16 at half
/// the speed of float32 (measured on a fifth-generation Xeon), so without AMX it is avx512_vnni, which multiplies the
/// same values in float32.
Isa fastest_isa();
/// Returns true if the processor has AMX but Linux does not let this process use it.
bool is_amx_refused();

/// Chooses the table of functions for `isa`; null for portable, which uses LibTorch's operations.
template <class Kernels>
const Kernels* choose_kernels(Isa isa, const Kernels& amx_bf16, const Kernels& avx512_bf16, const Kernels& avx512_vnni,
                              const Kernels& avx512, const Kernels& avx2) {
  switch (isa) {
    case Isa::amx_bf16:
      return &amx_bf16;
    case Isa::avx512_bf16:
      return &avx512_bf16;
    case Isa::avx512_vnni:
      return &avx512_vnni;
    case Isa::avx512:
      return &avx512;
    case Isa::avx2:
      return &avx2;
    case Isa::portable:
      return nullptr;
  }
  return nullptr;
}

/// Looks up kernels that an earlier step, e.g. the forward pass, has already found.
template <class Kernels>
const Kernels& found_again(const Kernels* kernels) {
  PRISM_ASSERT(kernels != nullptr, "PRISM_ISA", "another instruction set than a moment ago");
  return *kernels;
}

/// Sets current_isa() to `isa` for every thread while it lives, to compare instruction sets in one process.
class IsaScope {
 public:
  /// @throws InputError if this processor lacks it.
  explicit IsaScope(Isa isa);
  ~IsaScope();
  IsaScope(const IsaScope&) = delete;
  IsaScope& operator=(const IsaScope&) = delete;

 private:
  int before_;
};

}  // namespace prism
