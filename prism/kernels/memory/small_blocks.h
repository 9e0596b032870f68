// Memory of small tensors that is used again. LibTorch asks the C library for aligned memory for every tensor, which
// takes longer than much of what a decoded token computes in it.
#pragma once

namespace prism {

/// Makes LibTorch keep the memory of tensors on the CPU of up to 256 KiB for later ones of the same thread: up to a
/// MiB for each power of two. Call it once, before there are other threads.
void reuse_small_blocks();

}  // namespace prism
