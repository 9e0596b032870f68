// Windows divided into prompts and what follows them: head budgets in the training of decoders.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

#include "prism/models/batch.h"
#include "tests/core/message_of.h"
#include "tests/training/tiny_run.h"

namespace prism {
namespace {

class Prompts : public TinyRun {};

/// Validation predicts the second half of each window, from the token before it on.
constexpr int64_t kValidationTokens = 499 / kContext * (kContext / 2 + 1);

TEST_F(Prompts, DrawsPromptsForHeadBudgetsAndPredictsWhatFollows) {
  auto r = recipe();
  give_budgets(r);
  r.train.tokens = 320 * kContext;
  const auto records = train(r, "budget");
  const auto losses = values(records, "train", "loss");
  EXPECT_LT(losses.back(), losses.front() - 0.2);
  for (const auto& record : records)
    if (record["kind"] == "train" || record["kind"] == "eval") {
      EXPECT_EQ(record["head_share"].size(), 2u);
    }
  EXPECT_EQ(values(records, "eval", "val_tokens").back(), kValidationTokens);
  EXPECT_CONTAINS(records[0]["validation"].get<std::string>(), "second halves of windows");
}

TEST_F(Prompts, DrawsPromptsOfEveryLengthAndReadsNoTokenAfterThem) {
  auto r = recipe();
  give_budgets(r);
  r.model.context = 3;  // prompts of one or two tokens
  r.train.batch_rows = 1;
  r.train.tokens = 100 * 3;
  LanguageModelling objective;
  objective.open(r);
  objective.make_model(r, torch::kFloat);
  objective.initialise(r);
  objective.set_step(50);
  const auto decoder = objective.decoder();
  const TokenDataset data(r.data.folder, "train");
  WindowLoader windows(data, {.context = 3, .rows = 1, .seed = r.seed}, -1);
  const torch::NoGradGuard no_gradients;
  int64_t ones = 0;
  for (int64_t n = 0; n < 40; ++n) {
    const double loss = objective.loss(n, objective.forward(n, {})).item<double>();
    const auto shares = objective.head_share();
    Batch batch = windows.next();
    // One of the two prompts gives this loss, from budgets that read the prompt alone.
    std::vector<double> losses;
    for (const int32_t prompt : {1, 2}) {
      BatchTensors tensors(batch);
      Budgets budgets(r.train.budget, 0.5, {.seed = static_cast<uint64_t>(r.seed), .step = n});
      Auxiliary auxiliary(0.5);
      tensors.context.budgets = &budgets;
      tensors.context.auxiliary = &auxiliary;
      tensors.context.prompts_B = torch::tensor({prompt}, torch::kInt);
      const auto hidden = decoder->forward(tensors.tokens_BT, tensors.context);
      const auto each = decoder->head.token_losses(hidden, tensors.labels_BT)[0];
      losses.push_back(each.narrow(0, prompt - 1, 3 - (prompt - 1)).mean().item<double>());
      if (std::abs(losses.back() - loss) < 1e-5) {
        EXPECT_NEAR(mean_shares(budgets.decisions(), 2)[1], shares[1], 1e-6);
      }
    }
    ASSERT_GT(std::abs(losses[0] - losses[1]), 2e-5) << "the prompts cannot be told apart";
    ones += std::abs(losses[0] - loss) < 1e-5;
    EXPECT_TRUE(std::abs(losses[0] - loss) < 1e-5 || std::abs(losses[1] - loss) < 1e-5) << n;
  }
  EXPECT_GT(ones, 8);
  EXPECT_LT(ones, 32);
}

TEST_F(Prompts, PredictsWhatFollowsPromptsWithoutBudgetsToo) {
  auto r = recipe();
  r.train.prompts = true;
  const auto records = train(r, "prompts");
  EXPECT_EQ(values(records, "eval", "val_tokens").back(), kValidationTokens);
  EXPECT_CONTAINS(records[0]["validation"].get<std::string>(), "second halves of windows");
  EXPECT_LT(values(records, "train", "loss").back(), values(records, "train", "loss").front());
}

TEST_F(Prompts, WithHeadBudgetsResumesBitForBit) {
  for (const bool recompute : {false, true}) {
    auto r = recipe();
    give_budgets(r);
    r.train.recompute = recompute;
    r.train.checkpoint_every_tokens = 8 * kContext;
    r.train.keep_last = 20;
    r.train.log_steps = 3;
    const auto whole = fmt::format("whole-{}", recompute), cut = fmt::format("cut-{}", recompute);
    const auto records = train(r, whole);
    std::filesystem::copy(folder_.path() / whole, folder_.path() / cut, std::filesystem::copy_options::recursive);
    for (const auto& name : checkpoints(cut, "step-"))
      if (name > "step-00000004") std::filesystem::remove_all(folder_.path() / cut / "checkpoints" / name);
    EXPECT_TRUE(resumed(cut).run().finished);
    const auto again = read_records(folder_.path() / cut / "records.jsonl");
    for (const char* field : {"loss", "grad_norm"})
      EXPECT_EQ(values(again, "train", field), values(records, "train", field)) << field;
    const auto shares = [](const std::vector<Json>& all) {
      std::vector<Json> found;
      for (const auto& record : all)
        if (record["kind"] == "train") found.push_back(record["head_share"]);
      return found;
    };
    EXPECT_EQ(shares(again), shares(records));
  }
}

TEST_F(Prompts, RefusesHeadBudgetsWithADocumentMask) {
  auto r = recipe();
  give_budgets(r);
  r.data.document_mask = true;
  EXPECT_REFUSED(train(r, "masked"), "data.document_mask");
}

}  // namespace
}  // namespace prism
