#include "prism/layers/packed_weight.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "prism/kernels/quant/quant.h"
#include "prism/layers/embedding.h"
#include "prism/layers/linear.h"
#include "tests/core/message_of.h"
#include "tests/kernels/isas.h"

namespace prism {
namespace {

using torch::Tensor;

/// Blocks of Q8_0 as a uint8 tensor, and the values that they stand for.
std::pair<Tensor, Tensor> as_q8_0(const Tensor& values) {
  const auto dense = values.contiguous();
  const auto count = static_cast<size_t>(dense.numel());
  auto bytes = torch::empty({values.size(0), values.size(1) / 32 * 34}, torch::kByte);
  auto rounded = torch::empty_like(dense);
  const std::span blocks(static_cast<std::byte*>(bytes.mutable_data_ptr()), static_cast<size_t>(bytes.numel()));
  quantise(BlockType::q8_0, {dense.const_data_ptr<float>(), count}, blocks);
  dequantise(BlockType::q8_0, blocks, {rounded.mutable_data_ptr<float>(), count});
  return {bytes, rounded};
}

/// A weight of 40 rows of Q8_0, then 24 of bfloat16, and its values.
struct Mixed {
  PackedWeight packed{64, {{BlockType::q8_0, 16}, {BlockType::q8_0, 24}, {BlockType::bf16, 24}}};
  Tensor values;

  Mixed() {
    torch::manual_seed(1);
    const auto [bytes, first] = as_q8_0(torch::randn({40, 64}));
    const auto second = torch::randn({24, 64}).to(torch::kBFloat16);
    packed.set_blocks(0, bytes.narrow(0, 0, 23));  // not a whole strip
    packed.set_blocks(23, bytes.narrow(0, 23, 17));
    packed.set_rows(40, second);
    values = at::cat({first, second.to(torch::kFloat)});
  }
};

double difference(const Tensor& a, const Tensor& b) {
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
}

TEST(PackedWeight, HoldsTheValuesOfEveryPart) {
  const Mixed mixed;
  EXPECT_EQ(mixed.packed.parts().size(), 2);  // equal neighbours are one part
  const auto ids = torch::tensor({{0, 39, 22}, {23, 63, 40}}, torch::kLong);
  EXPECT_EQ(difference(mixed.packed.rows(ids), mixed.values.index({ids})), 0);
}

TEST(PackedWeight, MultipliesRowsOfPromptsAndOfDecoding) {
  const Mixed mixed;
  const auto x = torch::randn({2, 5, 64}).to(torch::kBFloat16), bias = torch::randn({64});
  const auto truth = at::linear(x.to(torch::kDouble), mixed.values.to(torch::kDouble), bias.to(torch::kDouble));
  for (const Isa isa : usable_isas_from(Isa::portable)) {
    const IsaScope scope(isa);
    for (const int64_t decoding : {0, 3, 10, 99}) {
      const auto y = mixed.packed.product(x, {.bias = bias, .decoding = decoding, .single = true});
      EXPECT_EQ(y.scalar_type(), torch::kFloat);
      // x is rounded to 1/254 of a block's largest value, of at most 4, and W to bfloat16: sums of 64 such errors.
      EXPECT_LT(difference(y, truth), 0.3) << isa_name(isa) << " " << decoding;
      const auto halves = mixed.packed.product(x, {.bias = bias, .relu = true, .decoding = decoding});
      EXPECT_EQ(halves.scalar_type(), torch::kBFloat16);
      EXPECT_LT(difference(halves, truth.clamp_min(0)), 0.4) << isa_name(isa) << " " << decoding;
    }
  }
}

TEST(PackedWeight, MultipliesSomeColumns) {
  if (PackedWeight::prompt_type() != torch::kBFloat16) GTEST_SKIP() << "no products in bfloat16";
  for (const int64_t width : {2, 10, 32, 48}) {
    torch::manual_seed(1);
    const auto values = torch::randn({40, 5 * width}).to(torch::kBFloat16), bias = torch::randn({40});
    PackedWeight packed(5 * width, {{BlockType::bf16, 40}});
    packed.set_rows(0, values);
    const std::vector<int64_t> blocks = {4, 0, 3};
    const auto x = torch::randn({7, 3 * width}).to(torch::kBFloat16);
    const auto out = torch::empty({7, 40}, torch::kBFloat16);
    packed.product_of_columns(out, x, blocks, width, {.bias = bias});
    const auto columns = values.to(torch::kDouble).unflatten(1, {5, width}).index_select(1, torch::tensor(blocks));
    const auto truth = at::linear(x.to(torch::kDouble), columns.flatten(1), bias.to(torch::kDouble));
    EXPECT_LT(difference(out, truth), 0.006 * truth.abs().max().item<double>()) << width;
    const auto whole = torch::randn({7, 5 * width}).to(torch::kBFloat16);
    packed.product_into(out, whole, {.bias = bias});
    EXPECT_EQ(difference(out, packed.product(whole, {.bias = bias})), 0);
  }
}

TEST(PackedWeight, TakesFloat32Rows) {
  const Mixed mixed;
  const auto x = torch::randn({7, 64});
  const auto truth = at::linear(x.to(torch::kDouble), mixed.values.to(torch::kDouble));
  for (const int64_t decoding : {0, 7}) {
    const auto y = mixed.packed.product(x, {.decoding = decoding});
    EXPECT_EQ(y.scalar_type(), torch::kFloat);
    EXPECT_LT(difference(y, truth), 0.3);
  }
}

TEST(PackedWeight, TakesRowsThatAreNotDense) {
  const Mixed mixed;
  const auto x = torch::randn({3, 4, 128}).to(torch::kBFloat16).narrow(1, 1, 2).narrow(2, 32, 64);
  for (const int64_t decoding : {0, 4, 6})
    EXPECT_TRUE(torch::equal(mixed.packed.product(x, {.decoding = decoding}),
                             mixed.packed.product(x.contiguous(), {.decoding = decoding})));
}

TEST(PackedWeight, GivesARowTheSameBitsInEveryCompany) {
  const Mixed mixed;
  const auto x = torch::randn({40, 64}).to(torch::kBFloat16);
  const auto all = mixed.packed.product(x, {.decoding = 20});
  const auto alone = mixed.packed.product(x.narrow(0, 7, 1), {.decoding = 1});
  EXPECT_TRUE(torch::equal(alone[0], all[7]));
  EXPECT_TRUE(torch::equal(mixed.packed.product(x.narrow(0, 33, 1), {})[0], all[33]));
}

TEST(FrozenWeight, ServesProductsAndRowsButNoValues) {
  torch::manual_seed(2);
  const Linear linear(64, 48);
  {
    const torch::NoGradGuard no_gradients;
    linear.weight.tensor().copy_(torch::randn({48, 64}).to(torch::kBFloat16));
  }
  const auto values = linear.weight.tensor().detach().clone(), x = torch::randn({3, 64}).to(torch::kBFloat16);
  linear.weight.freeze();
  const torch::NoGradGuard no_gradients;
  EXPECT_LT(difference(linear(x), at::linear(x.to(torch::kFloat), values)), 0.1);
  EXPECT_EQ(difference(linear.weight.rows(torch::tensor({5, 0})), values.index({torch::tensor({5, 0})})), 0);
  EXPECT_EQ(linear.weight.shape(), std::vector<int64_t>({48, 64}));
  EXPECT_EQ(linear.weight.numel(), 48 * 64);
  EXPECT_REFUSED(linear.weight.tensor(), "expected weights that can be trained, saved and read; found packed ones");
  EXPECT_REFUSED(linear.weight.cast(torch::kBFloat16), "--weights float32");
}

TEST(FrozenWeight, IsFrozenForAllHandles) {
  const Embedding embedding(32, 64);
  const Weight other = embedding.weight;
  embedding.weight.freeze();
  EXPECT_NE(other.packed(), nullptr);
  EXPECT_TRUE(other == embedding.weight);
}

}  // namespace
}  // namespace prism
