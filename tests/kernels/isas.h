// Tests of the kernels of every instruction set.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "prism/kernels/simd/isa.h"

namespace prism {

inline constexpr Isa kIsas[] = {Isa::portable,    Isa::avx2,        Isa::avx512,
                                Isa::avx512_vnni, Isa::avx512_bf16, Isa::amx_bf16};

inline std::vector<Isa> isas_from(Isa first) {
  return {std::find(std::begin(kIsas), std::end(kIsas), first), std::end(kIsas)};
}
/// Those that this processor has.
inline std::vector<Isa> usable_isas_from(Isa first) {
  auto isas = isas_from(first);
  std::erase_if(isas, [](Isa isa) { return isa > best_isa(); });
  return isas;
}

class IsaTest : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (best_isa() < GetParam()) GTEST_SKIP() << "needs a processor with " << isa_name(GetParam());
  }
};

inline std::string isa_title(const testing::TestParamInfo<Isa>& info) {
  std::string name = isa_name(info.param);
  std::erase(name, '-');
  return name;
}

}  // namespace prism
