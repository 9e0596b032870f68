// Inputs and hashes for comparing implementations of block selection. Every value is exact in float32.
#pragma once

#include <cstdint>
#include <vector>

namespace prism {

/// Queries, keys and values of H heads, L tokens and d features. Each block of tokens scatters around one of its head's
/// six centres.
class GoldenInput {
 public:
  GoldenInput(uint64_t seed, int64_t heads, int64_t tokens, int64_t width, int64_t block)
      : tokens_(tokens), width_(width), state_(seed) {
    constexpr uint64_t kCentres = 6;
    std::vector<float> centres(static_cast<size_t>(heads) * kCentres * static_cast<size_t>(width));
    for (float& x : centres) x = static_cast<float>(unit());
    for (auto* tensor : {&q, &k, &v}) {
      tensor->reserve(static_cast<size_t>(heads * tokens * width));
      for (int64_t head = 0; head < heads; ++head)
        for (int64_t first = 0; first < tokens; first += block) {
          const auto centre =
              (static_cast<uint64_t>(head) * kCentres + draw() % kCentres) * static_cast<uint64_t>(width);
          for (int64_t token = first; token < first + block && token < tokens; ++token)
            for (int64_t i = 0; i < width; ++i)
              tensor->push_back(0.375f * centres[centre + static_cast<uint64_t>(i)] + static_cast<float>(unit()));
        }
    }
  }

  /// [H, L, d], row-major.
  std::vector<float> q, k, v;

  const float* row(const std::vector<float>& tensor, int64_t head, int64_t token) const {
    return tensor.data() + (head * tokens_ + token) * width_;
  }

 private:
  uint64_t draw() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) & 0xFFF;
  }
  double unit() { return (static_cast<double>(draw()) - 2048) / 1024; }

  int64_t tokens_, width_;
  uint64_t state_;
};

/// The 64-bit FNV-1a hash.
class Fnv {
 public:
  void add(uint8_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; }
  uint64_t hash() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace prism
