// Which of its own kernels prism runs: the best that the processor has, or what PRISM_ISA names.
#pragma once

#include <string>

#include "prism/kernels/flash/flash.h"

namespace prism {

enum class Isa { portable, avx2, avx512, avx512_bf16 };

/// The instruction set in use. PRISM_ISA (portable, avx2, avx512, avx512-bf16) asks for a lesser one, for tests.
/// @throws InputError if PRISM_ISA names none, or one that this processor lacks.
Isa current_isa();
std::string isa_name(Isa isa);

/// The flash kernels of an instruction set; null for portable, which has LibTorch's.
const flash::Kernels* flash_kernels(Isa isa);

}  // namespace prism
