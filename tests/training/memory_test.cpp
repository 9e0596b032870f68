#include "prism/training/memory.h"

#include <gtest/gtest.h>

#include "prism/models/decoder.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

Recipe tiny_recipe() {
  Recipe r;
  r.model.vocab_size = 50;
  r.model.d_model = 16;
  r.model.context = 8;
  r.model.schedule = "2x3";
  r.model.ffn_width = 24;
  expand_shorthand(r.model);
  complete(r.model);
  r.train.batch_rows = 4;
  return r;
}

TEST(ActivationBytes, CountsInputsAndOutputsOfTheProductsOfLayers) {
  const Decoder decoder(tiny_recipe().model);
  // Per token and layer: qkv 16 -> 48, out 16 -> 16 into the stream, gate and up 16 -> 48, down 24 -> 16 into the
  // stream.
  const int64_t layer = 2 * (16 + 48) + (2 * 16 + 4 * 16) + 2 * (16 + 48) + (2 * 24 + 4 * 16);
  EXPECT_EQ(activation_bytes(decoder->weights(), 10, torch::kBFloat16, false), 10 * 3 * layer);
  EXPECT_EQ(activation_bytes(decoder->weights(), 10, torch::kBFloat16, true), 10 * (3 * 16 * 6 + layer));
  EXPECT_GT(activation_bytes(decoder->weights(), 10, torch::kFloat, false), 10 * 3 * layer);
}

TEST(CheckTrainingMemory, RefusesActivationsThatDoNotFitAndNamesTheWayOut) {
  Recipe r = tiny_recipe();
  const Decoder decoder(r.model);
  check_training_memory(decoder->weights(), r, torch::kBFloat16);
  r.train.batch_rows = int64_t{1} << 40;
  EXPECT_REFUSED(check_training_memory(decoder->weights(), r, torch::kBFloat16),
                 "lower train.batch_rows or set train.recompute");
  r.train.recompute = true;
  const std::string message = message_of([&] { check_training_memory(decoder->weights(), r, torch::kBFloat16); });
  EXPECT_CONTAINS(message, "lower train.batch_rows.");
}

}  // namespace
}  // namespace prism
