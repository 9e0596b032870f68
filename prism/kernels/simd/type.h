// Element types that prism's own kernels read and write; their arithmetic is float32.
#pragma once

namespace prism::simd {

enum class Type { bfloat16, float32 };

}  // namespace prism::simd
