#include "prism/evaluation/classification.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/data/labelled/made_classifier.h"
#include "tests/data/labelled/made_examples.h"

namespace prism {
namespace {

LabelledExamples labelled(int64_t classes, std::vector<int32_t> labels, std::vector<int32_t> predicted) {
  LabelledExamples result;
  result.classes = classes;
  result.nats.assign(labels.size(), 0.5);
  result.labels = std::move(labels);
  result.predicted = std::move(predicted);
  return result;
}

TEST(ClassificationScores, AreThoseOfScikitLearn) {
  const auto examples = labelled(3, {0, 0, 1, 1, 2}, {0, 1, 1, 1, 0});
  EXPECT_EQ(right_answers(examples), (std::vector<double>{1, 0, 1, 1, 0}));
  const auto scores = score(examples);
  EXPECT_EQ(scores.confusion, (std::vector<std::vector<int64_t>>{{1, 1, 0}, {0, 2, 0}, {1, 0, 0}}));
  EXPECT_DOUBLE_EQ(scores.accuracy, 3.0 / 5);
  EXPECT_DOUBLE_EQ(scores.balanced_accuracy, (0.5 + 1 + 0) / 3);
  EXPECT_DOUBLE_EQ(scores.macro_f1, (0.5 + 0.8 + 0) / 3);
  EXPECT_DOUBLE_EQ(scores.loss, 0.5);
  EXPECT_DOUBLE_EQ(scores.by_class[1].precision, 2.0 / 3);
  EXPECT_TRUE(std::isnan(scores.by_class[2].precision)) << "nothing was labelled 2";
}

TEST(ClassificationScores, LeaveOutClassesThatDoNotOccur) {
  // Class 3 has no examples and is never predicted; class 2 has none, but is predicted once.
  const auto scores = score(labelled(4, {0, 0, 1, 1}, {0, 0, 1, 2}));
  EXPECT_DOUBLE_EQ(scores.balanced_accuracy, (1 + 0.5) / 2);
  EXPECT_DOUBLE_EQ(scores.macro_f1, (1 + 2.0 / 3 + 0) / 3);
  EXPECT_TRUE(std::isnan(scores.by_class[2].recall));
  EXPECT_TRUE(std::isnan(scores.by_class[3].f1));
}

class LabelExamples : public testing::Test {
 protected:
  static Classifier classifier(const std::string& budget) {
    return make_classifier({.budget = budget, .context = 12, .init_std = 0.5});
  }
  LabelExamples() { make_examples(folder_.path() / "data", 100); }
  LabelledDataset data(const std::string& split = "valid") const { return {folder_.path() / "data", split}; }

  TemporaryFolder folder_;
};

TEST_F(LabelExamples, DoesNotDependOnTheBatch) {
  for (const char* budget : {"none", "learned", "fixed", "random"}) {
    const auto model = classifier(budget);
    const auto valid = data();
    const auto one = label_examples(model, valid, {.batch = 1}), many = label_examples(model, valid, {.batch = 7});
    EXPECT_EQ(one->predicted, many->predicted) << budget;
    EXPECT_EQ(one->cut, many->cut);
    EXPECT_GT(one->cut, 0);
    for (int64_t i = 0; i < valid.size(); ++i) {
      const auto place = static_cast<size_t>(i);
      EXPECT_EQ(one->labels[place], valid.label(i));
      EXPECT_NEAR(one->nats[place], many->nats[place], 1e-5);
    }
  }
}

TEST_F(LabelExamples, MeasuresChangedBudgets) {
  const auto label = [&](const Classifier& model, const std::string& heads, const std::string& gain) {
    return *label_examples(model, data(), {.budget_heads = heads, .budget_gain = gain});
  };
  const auto learned = classifier("learned"), fixed = classifier("fixed");
  const auto own = label(learned, "own", "own"), all = label(learned, "all", "own");
  EXPECT_EQ(mean_kept_shares(all.budgets, 2), (std::vector<double>{1, 1}));
  EXPECT_EQ(mean_shares(all.budgets, 2)[0], mean_shares(own.budgets, 2)[0]) << "the first layer reads the same";
  EXPECT_NE(all.nats, own.nats);
  EXPECT_EQ(label(fixed, "own", "mean").nats, label(fixed, "own", "own").nats) << "all texts have the mean";
  EXPECT_NE(label(learned, "own", "mean").nats, own.nats);
  // Where s is the same for all texts, its mean is that s, in each layer.
  const auto constant = classifier("learned");
  {
    const torch::NoGradGuard no_gradients;
    for (size_t l = 0; l < constant->blocks.size(); ++l) {
      auto& share = constant->blocks[l]->attention.budget.share;
      share.weight.tensor().zero_();
      share.bias.tensor().fill_(l == 0 ? -0.3 : 0.4);
    }
  }
  const auto own_constant = label(constant, "own", "own"), mean_constant = label(constant, "own", "mean");
  EXPECT_NE(mean_shares(own_constant.budgets, 2)[0], mean_shares(own_constant.budgets, 2)[1]);
  for (size_t i = 0; i < own_constant.nats.size(); ++i) EXPECT_NEAR(mean_constant.nats[i], own_constant.nats[i], 1e-5);
  const auto shuffled = label(learned, "shuffled", "own");
  EXPECT_EQ(mean_kept_shares(shuffled.budgets, 2)[0], mean_kept_shares(own.budgets, 2)[0]);
  EXPECT_NE(shuffled.nats, own.nats);
  const auto random = label(learned, "random", "own");
  for (size_t l = 0; l < 2; ++l) {
    const double heads = static_cast<double>(learned->config().layers[l].heads);
    EXPECT_NEAR(mean_kept_shares(random.budgets, 2)[l], std::round(mean_kept_shares(own.budgets, 2)[l] * heads) / heads,
                1e-9);
  }
  EXPECT_EQ(label(learned, "random", "own").nats, random.nats) << "the same heads each time";
  EXPECT_NE(label_examples(learned, data(), {.seed = 2, .budget_heads = "random"})->nats, random.nats);
}

TEST_F(LabelExamples, RefusesChangesThatItCannotMake) {
  const auto message = [&](const std::string& budget, const LabelOptions& options) {
    return message_of([&] { label_examples(classifier(budget), data(), options); });
  };
  EXPECT_NE(message("none", {.budget_heads = "all"}).find("expected a model with head budgets"), std::string::npos);
  EXPECT_NE(message("learned", {.budget_heads = "most"}).find("found \"most\""), std::string::npos);
  EXPECT_NE(message("learned", {.budget_gain = "none"}).find("expected own or mean"), std::string::npos);
}

TEST_F(LabelExamples, ReportsTheBudgetsOfEachLayer) {
  EXPECT_TRUE(label_examples(classifier("none"), data(), {})->budgets.empty());
  const auto fixed = label_examples(classifier("fixed"), data(), {});
  EXPECT_EQ(mean_shares(fixed->budgets, 2), (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(mean_kept_shares(fixed->budgets, 2), (std::vector<double>{0.5, 0.5}));
  // In the order of the split: what classify() decides for each text.
  const auto model = classifier("learned");
  const auto learned = label_examples(model, data(), {});
  ASSERT_EQ(learned->budgets.size(), 2u);
  const auto valid = data();
  for (int64_t i = 0; i < valid.size(); ++i) {
    auto batch = pad_texts({valid.tokens(i)}, 12);
    const auto alone = classify(model, ExampleTensors(batch)).budgets[1];
    EXPECT_NEAR(learned->budgets[1].share_B[i].item<double>(), alone.share_B.item<double>(), 1e-5) << i;
    EXPECT_TRUE(at::equal(learned->budgets[1].kept_BH[i], alone.kept_BH[0])) << i;
    EXPECT_TRUE(at::allclose(learned->budgets[1].probability_BH[i], alone.probability_BH[0], 1e-4, 1e-5)) << i;
  }
}

TEST_F(LabelExamples, UsesTheFirstExamplesOnly) {
  const auto some = label_examples(classifier("none"), data(), {.examples = 10}),
             all = label_examples(classifier("none"), data(), {});
  ASSERT_EQ(some->labels.size(), 10u);
  for (size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(some->labels[i], all->labels[i]);
    EXPECT_EQ(some->predicted[i], all->predicted[i]);
  }
}

TEST_F(LabelExamples, RefusesOptionsOutOfRange) {
  EXPECT_REFUSED(label_examples(classifier("none"), data(), {.batch = 0}), "--batch: expected 1 to 65536 texts");
  EXPECT_REFUSED(label_examples(classifier("none"), data(), {.examples = -1}),
                 "--examples: expected a number of examples");
}

}  // namespace
}  // namespace prism
