// Shared by the tests of row kernels: values of either type, and a fixture for every instruction set.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "prism/core/random.h"
#include "prism/kernels/rows/rows.h"
#include "tests/kernels/bfloat16.h"
#include "tests/kernels/guarded.h"

namespace prism {

/// Values of a tensor of type bfloat16 or float32.
class Values {
 public:
  Values(rows::Type type, int64_t count) : type_(type), half_(count), single_(count) {}
  Values(rows::Type type, const std::vector<float>& values) : Values(type, static_cast<int64_t>(values.size())) {
    for (size_t i = 0; i < values.size(); ++i) set(i, values[i]);
  }

  void* data() { return type_ == rows::Type::bfloat16 ? static_cast<void*>(half_.data()) : single_.data(); }
  double operator[](size_t i) const {
    if (type_ == rows::Type::float32) return single_[i];
    return widen(half_[i]);
  }
  void set(size_t i, float value) {
    single_[i] = value;
    half_[i] = narrow(value);
  }

 private:
  rows::Type type_;
  Guarded<uint16_t> half_;
  Guarded<float> single_;
};

inline std::vector<float> randoms(Random& random, size_t count, double magnitude = 1) {
  std::vector<float> values(count);
  for (auto& value : values) value = static_cast<float>(magnitude * (2 * random.uniform() - 1));
  return values;
}

inline Guarded<float> guarded(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// Half a unit in the last place of the type, relative.
inline double rounding(rows::Type type) {
  return type == rows::Type::bfloat16 ? 0x1p-9 : 0x1p-24;
}

constexpr int64_t kRows = 3;

class RowKernels : public testing::TestWithParam<std::tuple<Isa, rows::Type>> {
 protected:
  void SetUp() override {
    if (best_isa() < isa()) GTEST_SKIP() << "needs a processor with " << isa_name(isa());
  }
  static Isa isa() { return std::get<0>(GetParam()); }
  static rows::Type type() { return std::get<1>(GetParam()); }
  static const rows::Kernels* kernels() { return rows::kernels_of(isa()); }

  /// Runs `check` at widths around multiples of the vector width.
  template <class Check>
  void sweep(Check check) {
    Random random(1);
    for (const int64_t width : {2, 6, 8, 14, 16, 18, 30, 32, 34, 64, 66, 250}) {
      SCOPED_TRACE(testing::Message() << "width " << width);
      check(*kernels(), width, random);
    }
  }
};

}  // namespace prism
