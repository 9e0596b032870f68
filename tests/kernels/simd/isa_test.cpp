// Selection of the instruction set.
#include "prism/kernels/simd/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "prism/kernels/gemm/gemm.h"
#include "tests/kernels/guarded.h"
#include "tests/kernels/isas.h"

namespace prism {
namespace {

/// Sets PRISM_ISA while it lives and restores it afterwards.
class Environment {
 public:
  explicit Environment(const std::string& name) { ::setenv("PRISM_ISA", name.c_str(), 1); }
  ~Environment() { had_ ? ::setenv("PRISM_ISA", before_.c_str(), 1) : ::unsetenv("PRISM_ISA"); }

 private:
  bool had_ = std::getenv("PRISM_ISA") != nullptr;
  std::string before_ = had_ ? std::getenv("PRISM_ISA") : "";
};

TEST(Isa, IsWhatTheEnvironmentNamesUpToTheBest) {
  for (const Isa isa : kIsas) {
    SCOPED_TRACE(isa_name(isa));
    const Environment environment(isa_name(isa));
    if (isa <= best_isa())
      EXPECT_EQ(current_isa(), isa);
    else
      EXPECT_THROW(current_isa(), InputError);
  }
  const Environment empty("");
  EXPECT_EQ(current_isa(), fastest_isa());
  const Environment unknown("mmx");
  EXPECT_THROW(current_isa(), InputError);
}

TEST(Isa, DoesNotPreferPairsThatAreSlowerThanFloat32) {
  EXPECT_LE(fastest_isa(), best_isa());
  if (__builtin_cpu_is("intel")) {
    EXPECT_NE(fastest_isa(), Isa::avx512_bf16);
  } else {
    EXPECT_EQ(fastest_isa(), best_isa());
  }
}

TEST(Isa, IsTheScopesForEveryThreadAndThenWhatItWas) {
  const Isa before = current_isa();
  {
    const IsaScope outer(Isa::portable);
    {
      const IsaScope inner(best_isa());
      EXPECT_EQ(current_isa(), best_isa());
    }
    Isa found = best_isa();
    std::thread([&] { found = current_isa(); }).join();
    EXPECT_EQ(found, Isa::portable);
  }
  EXPECT_EQ(current_isa(), before);
  if (best_isa() < Isa::amx_bf16) {
    EXPECT_THROW(IsaScope{Isa::amx_bf16}, InputError);
    EXPECT_EQ(current_isa(), before);
  }
}

TEST(Isa, HasKernelsForThreadsOfAnyAge) {
  // Permission to use tiles is requested once, here possibly by the second thread.
  bool asked = false;
  std::thread older([&] {
    while (!__atomic_load_n(&asked, __ATOMIC_ACQUIRE)) std::this_thread::yield();
    const auto* kernels = gemm::kernels_of(best_isa());
    if (kernels == nullptr) return;
    constexpr int64_t kSize = 64;
    const Guarded<uint16_t> ones(kSize * kSize, 0x3F80);
    Guarded<float> out(kSize * kSize);
    gemm::Problem p;
    p.rows = p.columns = p.inner = kSize;
    p.a = p.b = {ones.data(), kSize, false};
    p.out = out.data();
    p.out_stride = kSize;
    GuardedScratch scratch(kernels->scratch_bytes(p));
    p.scratch = scratch.data();
    kernels->multiply(p);
    for (const float sum : out) ASSERT_EQ(sum, kSize);
  });
  std::thread([&] {
    best_isa();
    __atomic_store_n(&asked, true, __ATOMIC_RELEASE);
  }).join();
  older.join();
}

}  // namespace
}  // namespace prism
