// Training with a head that predicts several tokens ahead.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "prism/checkpoint/model_folder.h"
#include "tests/core/message_of.h"
#include "tests/training/tiny_run.h"

namespace prism {
namespace {

class SkipHead : public TinyRun {
 protected:
  Recipe skipping() const {
    auto r = recipe();
    r.model.skip = 2;
    r.train.tokens = 160 * kContext;
    return r;
  }
};

TEST_F(SkipHead, LearnsBesideTheMainHeadAndIsRecordedApart) {
  const auto records = train(skipping(), "skip");
  const auto added = values(records, "train", "auxiliary_loss"), losses = values(records, "train", "loss");
  // Two steps ahead, three tokens are possible: 1/4, 1/2 and 1/4.
  EXPECT_NEAR(added.front(), 0.1 * std::log(kVocabulary), 0.02);
  EXPECT_LT(added.back(), added.front() - 0.02);
  EXPECT_GT(added.back(), 0.1 * 1.04);
  EXPECT_LT(losses.back(), losses.front() - 0.5);
  EXPECT_EQ(values(records, "eval", "val_loss").size(), values(train(recipe(), "plain"), "eval", "val_loss").size());
}

TEST_F(SkipHead, WithWeightNothingChangesNothingElse) {
  auto r = skipping(), plain = recipe();
  r.train.skip_weight = 0;
  plain.train.tokens = r.train.tokens;
  r.train.optimizer_options.clip = plain.train.optimizer_options.clip = 0;
  EXPECT_EQ(values(train(r, "nothing"), "train", "loss"), values(train(plain, "plain"), "train", "loss"));
}

TEST_F(SkipHead, IsSavedAndResumesBitForBit) {
  expect_resumes(skipping(), {"loss", "auxiliary_loss", "grad_norm"});
  const auto config = load_config((folder_.path() / "whole").string());
  EXPECT_EQ(config.skip, 2);
}

TEST_F(SkipHead, WeightWithoutAHeadIsRefused) {
  auto r = recipe();
  r.train.skip_weight = 0.2;
  EXPECT_REFUSED(train(r, "weight"), "expected no train.skip_weight without model.skip");
  r.model.skip = 2;
  r.train.skip_weight = -1;
  EXPECT_REFUSED(train(r, "negative"), "train.skip_weight: expected at least 0");
}

}  // namespace
}  // namespace prism
