// Functions that are compiled separately for each instruction set.
#pragma once

/// Always inline: an out-of-line copy could be linked from a file built for another instruction set.
#define PRISM_FORCE_INLINE inline __attribute__((always_inline))
/// The same for a lambda; place it after the parameters.
#define PRISM_INLINE_LAMBDA __attribute__((always_inline))
