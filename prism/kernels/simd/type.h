// Element types that prism's kernels read and write. Their arithmetic is float32.
#pragma once

namespace prism::simd {

enum class Type { bfloat16, float32 };

}  // namespace prism::simd
