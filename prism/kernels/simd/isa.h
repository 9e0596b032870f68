// Which of its own kernels prism runs: the best that the processor has, or what PRISM_ISA names.
#pragma once

#include <string>

#include "prism/core/error.h"

namespace prism {

enum class Isa { portable, avx2, avx512, avx512_bf16, amx_bf16 };

/// The instruction set in use. PRISM_ISA (portable, avx2, avx512, avx512-bf16, amx-bf16) asks for a lesser one: to
/// compare, or to compute as another machine does.
/// @throws InputError if PRISM_ISA names none, or one that this process cannot use.
Isa current_isa();
std::string isa_name(Isa isa);

/// The best that this processor has and Linux lets this process use. The first call asks Linux for AMX, for all
/// threads; from then on signals need 8 KiB more of the stack that they are handled on.
Isa best_isa();
/// Whether the processor has AMX and Linux does not let this process use it.
bool is_amx_refused();

/// The table of functions for `isa`, out of one for each; null for portable, which has LibTorch's operations.
template <class Kernels>
const Kernels* choose_kernels(Isa isa, const Kernels& amx_bf16, const Kernels& avx512_bf16, const Kernels& avx512,
                              const Kernels& avx2) {
  switch (isa) {
    case Isa::amx_bf16:
      return &amx_bf16;
    case Isa::avx512_bf16:
      return &avx512_bf16;
    case Isa::avx512:
      return &avx512;
    case Isa::avx2:
      return &avx2;
    case Isa::portable:
      return nullptr;
  }
  return nullptr;
}

/// What was found when the choice fell on prism's own kernels, in a forward pass for instance, and is looked for again.
template <class Kernels>
const Kernels& found_again(const Kernels* kernels) {
  PRISM_ASSERT(kernels != nullptr, "PRISM_ISA", "another instruction set than a moment ago");
  return *kernels;
}

/// While it lives, current_isa() is `isa`, for every thread: to compare two in one process.
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
