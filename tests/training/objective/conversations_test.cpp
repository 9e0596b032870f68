// Language modelling on shards with marks: only tokens of the assistant are predicted.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "prism/formats/token_marks.h"
#include "prism/models/batch.h"
#include "tests/core/message_of.h"
#include "tests/training/tiny_run.h"

namespace prism {
namespace {

class Conversations : public TinyRun {
 protected:
  Conversations() {
    put_marks("train_000000", 4000, 3);
    put_marks("valid_000000", 500, 4);
  }

  /// Marks stretches of up to 30 tokens, with up to 40 between them, so that windows have many labels, few or none.
  void put_marks(const std::string& shard, size_t tokens, uint64_t seed) {
    Random random(seed);
    std::vector<uint8_t> marks;
    while (marks.size() < tokens) {
      marks.insert(marks.end(), 1 + random.below(40), 0);
      marks.insert(marks.end(), 1 + random.below(30), kAssistantMark);
    }
    marks.resize(tokens);
    write_marks(shard, marks);
  }

  void write_marks(const std::string& shard, const std::vector<uint8_t>& marks) {
    TokenMarksWriter writer(folder_.path() / "data" / (shard + ".marks"));
    writer.write(marks);
    writer.commit();
  }

  /// The number of tokens of the assistant that the next batches predict. @param nats  their losses are added to it.
  static int64_t labels_of(WindowLoader& windows, int64_t batches, Decoder decoder, double& nats) {
    const torch::NoGradGuard no_gradients;
    int64_t labels = 0;
    for (int64_t n = 0; n < batches; ++n) {
      Batch batch = windows.next();
      BatchTensors tensors(batch);
      const auto logits = decoder->head.logits(decoder->forward(tensors.tokens_BT, tensors.context));
      const auto each = logits.to(torch::kDouble).log_softmax(-1);
      for (int64_t b = 0; b < batch.rows; ++b)
        for (int64_t t = 0; t < batch.context; ++t) {
          const int64_t label = batch.labels[static_cast<size_t>(b * batch.context + t)];
          if (label < 0) continue;
          ++labels;
          nats -= each[b][t][label].item<double>();
        }
    }
    return labels;
  }
};

TEST_F(Conversations, HaveALossThatIsTheMeanOverTheAssistantsTokens) {
  auto r = recipe();
  r.train.batch_rows = 2;
  LanguageModelling objective;
  objective.open(r);
  objective.make_model(r, torch::kFloat);
  objective.initialise(r);
  objective.set_step(0);
  const TokenDataset data(r.data.folder, "train");
  ASSERT_TRUE(data.has_marks());
  WindowLoader windows(data, {.context = kContext, .rows = 2, .seed = r.seed}, -1);
  const torch::NoGradGuard no_gradients;
  bool is_partly_masked = false;
  for (int64_t n = 0; n < 12; ++n) {
    double nats = 0;
    const int64_t labels = labels_of(windows, 1, objective.decoder(), nats);
    EXPECT_EQ(objective.labels(n), labels);
    // float32 sums of 32 losses near 3.7.
    EXPECT_NEAR(objective.loss(n, objective.forward(n, {})).item<double>(),
                labels > 0 ? nats / static_cast<double>(labels) : 0, 1e-5);
    is_partly_masked = is_partly_masked || (labels > 0 && labels < 2 * kContext);
  }
  EXPECT_TRUE(is_partly_masked);
}

using PlainText = TinyRun;

TEST_F(PlainText, HasAsManyLabelsInEveryBatchUnlessWindowsAreDivided) {
  auto plain = recipe();
  plain.train.batch_rows = 2;
  auto with_prompts = plain;
  with_prompts.train.prompts = true;
  LanguageModelling whole, divided;
  whole.open(plain);
  divided.open(with_prompts);
  std::set<int64_t> counts;
  for (int64_t n = 0; n < 6; ++n) {
    EXPECT_EQ(whole.labels(n), 2 * kContext);
    EXPECT_LE(divided.labels(n), 2 * kContext);
    counts.insert(divided.labels(n));
  }
  EXPECT_GT(counts.size(), 1u) << "prompts differ in length";
}

TEST_F(Conversations, AccumulateStepsOfTheSameLossAndGradientAsOneLargeStep) {
  for (const int64_t skip : {0, 2}) {
    auto large = recipe();
    large.model.skip = skip;
    auto small = large;
    small.train.batch_rows = 1;
    small.train.accumulate = 8;
    const auto large_records = train(large, fmt::format("large{}", skip));
    const auto small_records = train(small, fmt::format("small{}", skip));
    for (const char* field : {"loss", "grad_norm", "auxiliary_loss"}) {
      if (skip == 0 && field == std::string("auxiliary_loss")) continue;
      const auto of_large = values(large_records, "train", field), of_small = values(small_records, "train", field);
      ASSERT_EQ(of_large.size(), of_small.size());
      ASSERT_FALSE(of_large.empty()) << field;
      // Sums in another order; the weights of later steps differ by as much.
      for (size_t i = 0; i < of_large.size(); ++i)
        EXPECT_NEAR(of_small[i], of_large[i], 1e-4 * std::abs(of_large[i])) << field << " of step " << i + 1;
    }
  }
}

TEST_F(Conversations, ValidateOnTheAssistantsTokensAlone) {
  const auto records = train(recipe(), "run");
  const TokenDataset data((folder_.path() / "data").string(), "valid");
  WindowLoader windows(data, {.context = kContext, .rows = 8, .shuffle = false}, -1);
  double nats = 0;
  const int64_t labels = labels_of(windows, 4, decoder_, nats);
  EXPECT_LT(labels, 499 / kContext * kContext);
  EXPECT_EQ(values(records, "eval", "val_tokens").back(), static_cast<double>(labels));
  EXPECT_NEAR(values(records, "eval", "val_loss").back(), nats / static_cast<double>(labels), 1e-5);
}

TEST_F(Conversations, ResumeBitForBit) {
  auto r = recipe();
  r.train.accumulate = 2;
  r.train.batch_rows = 4;
  expect_resumes(r, {"loss", "grad_norm"});
}

TEST_F(Conversations, RefuseAValidationThatPredictsNothing) {
  std::vector<uint8_t> marks(500, kAssistantMark);
  std::fill(marks.begin(), marks.begin() + 300, 0);
  write_marks("valid_000000", marks);
  auto r = recipe();
  r.train.eval_tokens = 8 * kContext;
  EXPECT_REFUSED(train(r, "short"), "expected tokens of the assistant in the validation shards");
  r.train.eval_tokens = 0;
  EXPECT_EQ(values(train(r, "whole"), "eval", "val_tokens").back(), 496 - 299);
}

TEST_F(Conversations, MayBeMixedWithText) {
  put("train_000000.bin", 2000, 5, "text");
  auto r = recipe();
  r.data.mixture = {{r.data.folder, 1.0}, {(folder_.path() / "text").string(), 1.0}};
  const auto losses = values(train(r, "mixed"), "train", "loss");
  for (const double loss : losses) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_LT(losses.back(), losses.front());
}

}  // namespace
}  // namespace prism
