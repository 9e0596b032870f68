// matmul() on all its code paths, against float64.
#include "prism/kernels/matmul.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <limits>

#include "prism/kernels/simd/isa.h"
#include "tests/kernels/isas.h"

namespace prism {
namespace {

using torch::Tensor;

Tensor random(int64_t rows, int64_t columns, torch::ScalarType type, bool transposed) {
  const auto values = transposed ? torch::randn({columns, rows}).t() : torch::randn({rows, columns});
  return values.to(type);  // keeps the strides
}

/// Allows half a unit of the result's type, plus sqrt(number of terms) float32 units of the sum of magnitudes.
void expect_close(const Tensor& found, const Tensor& a, const Tensor& b, const Tensor& before) {
  const auto wide = at::mm(a.to(torch::kDouble), b.to(torch::kDouble)) + before;
  const auto magnitude = at::mm(a.to(torch::kDouble).abs(), b.to(torch::kDouble).abs()) + before.abs();
  const double rounding = found.scalar_type() == torch::kBFloat16 ? 0x1p-8 : 0;
  const auto bound = wide.abs() * rounding + magnitude * 0x1p-23 * std::sqrt(static_cast<double>(a.size(1)) + 1);
  EXPECT_LE((found.to(torch::kDouble) - wide - bound).max().item<double>(), 0);
}

TEST(Matmul, EqualsTheDefinitionOnEveryWay) {
  torch::manual_seed(1);
  for (const Isa isa : usable_isas_from(Isa::portable)) {
    const IsaScope scope(isa);
    for (const auto& [rows, inner] : {std::pair{3, 75}, {64, 75}, {130, 75}, {64, 64}, {144, 1056}})
      for (const bool a_transposed : {false, true})
        for (const bool b_transposed : {false, true}) {
          SCOPED_TRACE(isa_name(isa));
          for (const auto type : {torch::kBFloat16, torch::kFloat}) {
            const auto a = random(rows, inner, type, a_transposed), b = random(inner, 50, type, b_transposed);
            expect_close(matmul(a, b, type), a, b, torch::zeros({1}));
          }
        }
  }
}

TEST(Matmul, KeepsFloat32SumsWhereTheyAreWanted) {
  torch::manual_seed(2);
  const auto a = random(100, 64, torch::kBFloat16, true), b = random(64, 40, torch::kBFloat16, false);
  const auto out = matmul(a, b, torch::kFloat);
  if (current_isa() > Isa::portable) expect_close(out, a, b, torch::zeros({1}));
  const auto before = out.clone();
  matmul_into(out, a, b, /*accumulate=*/true);
  EXPECT_TRUE(at::allclose(out, 2 * before, 1e-2, 1e-2));
  if (current_isa() > Isa::portable) expect_close(out, a, b, before.to(torch::kDouble));
}

TEST(Matmul, AddsABiasAndDropsWhatIsNegative) {
  torch::manual_seed(4);
  for (const Isa isa : usable_isas_from(Isa::portable)) {
    const IsaScope scope(isa);
    // The last shape has several blocks of the inner axis.
    for (const auto& [rows, inner] : {std::pair{3, 75}, {130, 75}, {64, 64}, {70, 4200}}) {
      SCOPED_TRACE(isa_name(isa));
      const auto x = random(rows, inner + 3, torch::kFloat, false).narrow(1, 0, inner),
                 w = random(83, inner + 5, torch::kFloat, false).narrow(1, 0, inner), shift = torch::randn({83});
      x[rows - 1][0] = std::numeric_limits<float>::quiet_NaN();
      for (const bool transposed : {false, true}) {  // of few rows, w is read in place
        const auto wt = transposed ? w.t() : w.t().contiguous();
        const auto sum = torch::empty({rows, 90}).narrow(1, 0, 83), relu = torch::empty({rows, 90}).narrow(1, 0, 83);
        matmul_into(sum, x, wt, shift, /*relu=*/false);
        matmul_into(relu, x, wt, shift, /*relu=*/true);
        expect_close(sum.narrow(0, 0, rows - 1), x.narrow(0, 0, rows - 1), wt, shift.to(torch::kDouble));
        EXPECT_TRUE(at::equal(relu.narrow(0, 0, rows - 1), sum.narrow(0, 0, rows - 1).relu()));
        EXPECT_TRUE(relu[rows - 1].isnan().all().item<bool>()) << "a NaN stays";
      }
      const auto a = random(rows, inner, torch::kBFloat16, false), b = random(inner, 83, torch::kBFloat16, true);
      const auto bias = 10 * torch::randn({83});
      const auto product = matmul(a, b, torch::kFloat) + bias;
      for (const bool relu : {false, true}) {
        const auto out = torch::full({rows, 83}, 7.0, torch::kBFloat16);
        matmul_into(out, a, b, bias, relu);
        // LibTorch's product rounds twice.
        EXPECT_TRUE(at::allclose(out.to(torch::kFloat), relu ? product.relu() : product, 0x1p-7, 0x1p-6));
      }
      const auto plain = torch::empty({rows, 83}, torch::kBFloat16);
      matmul_into(plain, a, b, {}, false);
      EXPECT_TRUE(at::equal(plain, matmul(a, b, torch::kBFloat16)));
    }
    const auto a = torch::full({64, 64}, std::numeric_limits<float>::quiet_NaN()).to(torch::kBFloat16);
    const auto out = torch::empty({64, 64}, torch::kBFloat16);
    matmul_into(out, a, a, {}, /*relu=*/true);
    EXPECT_TRUE(out.isnan().all().item<bool>());
  }
}

TEST(Matmul, WritesIntoPartOfALargerMatrixAndLeavesTheRest) {
  torch::manual_seed(3);
  const auto a = random(70, 32, torch::kBFloat16, false), b = random(32, 20, torch::kBFloat16, false);
  const auto whole = torch::full({90, 30}, 7.0, torch::kBFloat16);
  matmul_into(whole.narrow(0, 10, 70).narrow(1, 5, 20), a, b);
  EXPECT_TRUE(at::equal(whole.narrow(0, 10, 70).narrow(1, 5, 20), matmul(a, b, torch::kBFloat16)));
  EXPECT_EQ(whole.eq(7).sum().item<int64_t>(), 90 * 30 - 70 * 20);
}

TEST(Matmul, MultipliesEachMatrixOfABatch) {
  torch::manual_seed(5);
  for (const Isa isa : usable_isas_from(Isa::portable)) {
    const IsaScope scope(isa);
    for (const int64_t rows : {8, 96})  // the fewer rows are LibTorch's
      for (const auto type : {torch::kBFloat16, torch::kFloat}) {
        SCOPED_TRACE(isa_name(isa));
        const auto x = torch::randn({3, rows, 40}).to(type), out = torch::empty({3, rows, rows}, type);
        bmm_into(out, x, x.transpose(1, 2));
        for (int i = 0; i < 3; ++i) expect_close(out[i], x[i], x[i].t(), torch::zeros({1}));
      }
  }
  const auto none = torch::empty({0, 4, 4});
  bmm_into(none, none, none);
}

TEST(Matmul, TakesFloat64AndEmptyMatrices) {
  const auto a = torch::randn({70, 9}, torch::kDouble), b = torch::randn({9, 4}, torch::kDouble);
  EXPECT_TRUE(at::allclose(matmul(a, b, torch::kDouble), at::mm(a, b)));
  const auto none = torch::empty({70, 0}, torch::kBFloat16);
  EXPECT_EQ(matmul(none, none.t(), torch::kBFloat16).abs().max().item<float>(), 0);
  EXPECT_EQ(matmul(none.t(), none, torch::kFloat).numel(), 0);
}

}  // namespace
}  // namespace prism
