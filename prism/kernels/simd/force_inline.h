// Functions that each instruction set compiles for itself.
#pragma once

/// An inline function that is also compiled out of line could be linked from a file built for another instruction set.
#define PRISM_FORCE_INLINE inline __attribute__((always_inline))
