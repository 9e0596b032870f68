// Functions that each instruction set compiles for itself.
#pragma once

/// An inline function that is also compiled out of line could be linked from a file built for another instruction set.
#define PRISM_FORCE_INLINE inline __attribute__((always_inline))
/// The same for a lambda, behind its parameters.
#define PRISM_INLINE_LAMBDA __attribute__((always_inline))
