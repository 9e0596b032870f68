#include "prism/report/compare/run.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/report/compare/compare.h"
#include "prism/report/tables/summary.h"
#include "tests/core/message_of.h"
#include "tests/report/run_folder.h"

namespace prism {
namespace {

/// The message of the InputError that reading the folder throws; empty if it throws none.
std::string refusal(const std::filesystem::path& folder) {
  return message_of([&] { read_run(folder); });
}

TEST(ReadRun, TakesEveryFieldFromRecordsAndRecipe) {
  const RunFolder folder;
  const prism::Run run = read_run(folder.write(
      "r",
      run_lines({.name = "prism",
                 .seed = 3,
                 .more = "{\"kind\":\"sample\",\"tokens\":3000,\"prompt\":\"A\",\"text\":\" b\"}\n"}),
      R"({"name":"prism","model":{"d_model":16,"layers":[{"heads":2},{"heads":4}]},"train":{"betas":[0.9,0.95],"steps":[]}})"));
  EXPECT_EQ(run.name, "prism");
  EXPECT_EQ(run.schedule, "2x2");
  EXPECT_EQ(run.seed, 3);
  EXPECT_EQ(run.parameters, 8421376);
  EXPECT_EQ(run.flops_per_token, 50000000);
  EXPECT_EQ(run.total, 3000);
  EXPECT_EQ(run.threads, 2);
  EXPECT_EQ(run.cpu, "Test CPU");
  EXPECT_EQ(run.dtype, "bfloat16");
  EXPECT_DOUBLE_EQ(run.peak_gflops.value(), 500.4);
  EXPECT_DOUBLE_EQ(run.peak_share.value(), 0.4);
  EXPECT_DOUBLE_EQ(run.rate.value(), 1234.4) << "the end record's, not the training records' median";
  EXPECT_EQ(run.peak_memory_bytes, 104857600);
  ASSERT_EQ(run.layers.size(), 2U);
  EXPECT_EQ(run.layers[1], (LayerRecord{4, 2, 4, 32}));
  ASSERT_EQ(run.train.size(), 3U);
  EXPECT_DOUBLE_EQ(run.train[0].loss, 5.5);
  ASSERT_EQ(run.valid.size(), 3U) << "the end record repeats the last evaluation";
  EXPECT_EQ(run.valid[2].trained, 3000);
  EXPECT_DOUBLE_EQ(run.valid[1].seconds, 20);
  ASSERT_EQ(run.samples.size(), 1U);
  EXPECT_EQ(run.samples[0].text, " b");
  EXPECT_EQ(run.trained, 3000);
  EXPECT_DOUBLE_EQ(run.seconds, 70);
  EXPECT_TRUE(run.finished);
  const std::vector<RecipeField> expected = {{"name", "prism"},
                                             {"model.d_model", "16"},
                                             {"model.layers[0].heads", "2"},
                                             {"model.layers[1].heads", "4"},
                                             {"train.betas[0]", "0.9"},
                                             {"train.betas[1]", "0.95"},
                                             {"train.steps", "[]"}};
  EXPECT_EQ(run.recipe, expected);
}

TEST(ReadRun, SaysWhichSpeedsAreOfABusyMachine) {
  const RunFolder folder;
  const auto lines = [](double share) {
    return run_lines({.more = fmt::format(R"({{"kind":"train","tokens":3001,"loss":4,"wait_share":{}}})"
                                          "\n",
                                          share)});
  };
  const prism::Run idle = read_run(folder.write("idle", lines(0.02))),
                   busy = read_run(folder.write("busy", lines(0.45)));
  EXPECT_DOUBLE_EQ(busy.wait_share.value(), 0.45);
  EXPECT_FALSE(idle.was_busy());
  EXPECT_TRUE(busy.was_busy());
  EXPECT_FALSE(read_run(folder.write("unknown", run_lines({}))).was_busy());
  EXPECT_TRUE(compare_runs({idle}, "").remarks.empty());
  const auto comparison = compare_runs({idle, busy}, "");
  ASSERT_FALSE(comparison.remarks.empty());
  EXPECT_NE(comparison.remarks[0].find("busy machine, whose threads waited up to 45% of the time"), std::string::npos);
  EXPECT_NE(table_text(runs_table(comparison)).find("1,234 (busy)"), std::string::npos)
      << table_text(runs_table(comparison));
}

TEST(ReadRun, IsOnTheMachineWhereItWasResumedLast) {
  const RunFolder folder;
  const prism::Run run = read_run(folder.write(
      "r", run_lines(
               {.more = "{\"kind\":\"resume\",\"tokens\":3000,\"threads\":7,\"cpu\":\"Other\",\"peak_gflops\":9}\n"})));
  EXPECT_EQ(run.threads, 7);
  EXPECT_EQ(run.cpu, "Other");
  EXPECT_DOUBLE_EQ(run.peak_gflops.value(), 9);
  EXPECT_TRUE(run.finished);
}

TEST(ReadRun, IsUnfinishedWithoutAnEndRecordAndTakesTheMedianRate) {
  const RunFolder folder;
  std::string text = run_lines({.end = false});
  text += "{\"kind\":\"train\",\"tokens\":4000,\"loss\":4,\"tokens_per_s\":2000}\n";
  text += "{\"kind\":\"train\",\"tokens\":5000,\"loss\":4,\"tokens_per_s\":9000}\n";
  const prism::Run run = read_run(folder.write("r", text));
  EXPECT_FALSE(run.finished);
  EXPECT_DOUBLE_EQ(run.rate.value(), 1000) << "of 1000, 1000, 1000, 2000, 9000";
}

TEST(ReadRun, BelievesTrainingAfterAnEnd) {
  const RunFolder folder;
  const prism::Run run =
      read_run(folder.write("r", run_lines({}) + "{\"kind\":\"train\",\"tokens\":4000,\"loss\":3.9}\n"));
  EXPECT_FALSE(run.finished);
  EXPECT_EQ(run.trained, 4000);
}

TEST(ReadRun, LeavesOutALastLineCutShort) {
  const RunFolder folder;
  const prism::Run run =
      read_run(folder.write("r", run_lines({.end = false}) + "{\"kind\":\"eval\",\"tokens\":9000,\"val_lo"));
  EXPECT_EQ(run.valid.size(), 3U);
  EXPECT_EQ(run.trained, 3000);
  const auto comparison = compare_runs({run});
  ASSERT_EQ(comparison.remarks.size(), 1U);
  EXPECT_NE(comparison.remarks[0].find("cut short"), std::string::npos);
}

TEST(ReadRun, KnowsWhetherItDivergedAndWhere) {
  const RunFolder folder;
  const std::string diverged = "{\"kind\":\"diverged\",\"tokens\":3100,\"place\":\"the queries of layer 1\"}\n";
  const prism::Run run = read_run(folder.write("r", run_lines({.end = false}) + diverged));
  EXPECT_EQ(run.diverged, "the queries of layer 1");
  EXPECT_FALSE(run.finished);
  EXPECT_TRUE(compare_runs({run}).remarks.empty());
  const std::string on = "{\"kind\":\"train\",\"tokens\":3200,\"loss\":3}\n";
  EXPECT_FALSE(read_run(folder.write("s", run_lines({.end = false}) + diverged + on)).diverged) << "resumed";
}

TEST(ReadRun, ShowsARunOfNothingButItsFirstRecord) {
  const RunFolder folder;
  const prism::Run run = read_run(folder.write("r", run_lines({.losses = {}})));
  EXPECT_TRUE(run.valid.empty());
  EXPECT_TRUE(run.train.empty());
  EXPECT_FALSE(run.finished);
  EXPECT_FALSE(run.rate.has_value());
}

TEST(ReadRun, CallsARunWithoutANameAfterItsFolder) {
  const RunFolder folder;
  folder.write("nameless", "{\"kind\":\"eval\",\"tokens\":10,\"val_loss\":2.5}\n");
  for (const char* spelling : {"nameless", "nameless/", "nameless/."}) {
    const prism::Run run = read_run(folder.path(spelling));
    EXPECT_EQ(run.name, "nameless") << spelling;
    EXPECT_FALSE(run.seed.has_value());
    EXPECT_FALSE(run.parameters.has_value());
    EXPECT_TRUE(run.recipe.empty());
    EXPECT_EQ(run.valid.size(), 1U);
  }
}

TEST(ReadRun, LeavesOutLossesThatAreNotFinite) {
  const RunFolder folder;
  const prism::Run run = read_run(folder.write("r",
                                               "{\"kind\":\"train\",\"tokens\":1,\"loss\":null}\n"
                                               "{\"kind\":\"train\",\"tokens\":2,\"loss\":7.5}\n"
                                               "{\"kind\":\"eval\",\"tokens\":2}\n"));
  ASSERT_EQ(run.train.size(), 1U);
  EXPECT_EQ(run.train[0].trained, 2);
  EXPECT_TRUE(run.valid.empty());
}

TEST(ReadRun, LetsARepeatedStretchReplaceTheEarlierOne) {
  const RunFolder folder;
  std::string text;
  for (const auto& [tokens, loss] : {std::pair{10, 5.0}, {20, 4.0}, {30, 3.0}, {20, 4.1}, {40, 2.0}}) {
    text += fmt::format("{{\"kind\":\"eval\",\"tokens\":{},\"val_loss\":{}}}\n", tokens, loss);
  }
  const prism::Run run = read_run(folder.write("r", text));
  ASSERT_EQ(run.valid.size(), 3U);
  EXPECT_DOUBLE_EQ(run.valid[1].loss, 4.1);
  EXPECT_EQ(run.valid[2].trained, 40);
}

TEST(ReadRun, TakesWhatWasMeasuredOnTheTrainedModelWithoutMovingOn) {
  const RunFolder folder;
  const std::string end =
      R"({"kind":"attention_distance","sequences":64,"tokens":9,"seconds":1,"layers":[)"
      R"({"layer":1,"heads":4,"distance":20.5},{"layer":0,"heads":2,"distance":57.25},)"
      R"({"layer":2,"heads":4,"distance":null}]})"
      "\n"
      R"({"kind":"text_loss","text":"A","nats":400,"tokens":100,"bytes":500,"documents":[[400,100]]})"
      "\n"
      R"({"kind":"text_loss","text":"B","nats":50,"tokens":10})"
      "\n"
      R"({"kind":"text_loss","text":"A","nats":410,"tokens":100})"
      "\n"
      R"({"kind":"text_loss","text":"C","nats":null,"tokens":100})"
      "\n";
  const prism::Run run = read_run(folder.write("r", run_lines({}) + end));
  ASSERT_EQ(run.distances.size(), 2U) << "without what is not finite";
  EXPECT_EQ(run.distances[0].layer, 0);
  EXPECT_EQ(run.distances[0].heads, 2);
  EXPECT_DOUBLE_EQ(run.distances[0].distance, 57.25);
  ASSERT_EQ(run.text_losses.size(), 2U);
  EXPECT_EQ(run.text_losses[0].text, "A");
  EXPECT_DOUBLE_EQ(run.text_losses[0].nats, 410) << "the last record of a text";
  EXPECT_EQ(run.text_losses[1].tokens, 10);
  EXPECT_EQ(run.trained, 3000) << "a text's tokens are not trained ones";
  EXPECT_DOUBLE_EQ(run.seconds, 70);
  EXPECT_TRUE(run.finished);
}

TEST(ReadRun, RefusesMeasurementsThatCannotBe) {
  const RunFolder folder;
  const auto distances = [&](const std::string& layers) {
    return refusal(folder.write("r", "{\"kind\":\"attention_distance\",\"layers\":" + layers + "}\n"));
  };
  EXPECT_NE(distances("7").find("a list as layers"), std::string::npos);
  EXPECT_NE(distances("[7]").find("a list of objects as layers"), std::string::npos);
  EXPECT_NE(distances(R"([{"layer":-1,"distance":2}])").find("layers 0 to 4095"), std::string::npos);
  EXPECT_NE(distances(R"([{"distance":2}])").find("layers 0 to 4095"), std::string::npos);
  EXPECT_NE(distances(R"([{"layer":1,"distance":2},{"layer":1,"distance":3}])").find("every layer once"),
            std::string::npos);
  EXPECT_NE(refusal(folder.write("t", R"({"kind":"text_loss","text":"A","nats":4,"tokens":0})"
                                      "\n"))
                .find("at least one token"),
            std::string::npos);
}

TEST(ReadRun, PassesOverKindsItDoesNotKnow) {
  const RunFolder folder;
  const prism::Run run =
      read_run(folder.write("r", run_lines({.more = "{\"kind\":\"entropy\",\"tokens\":3000,\"loss\":\"high\"}\n"})));
  EXPECT_EQ(run.train.size(), 3U);
}

TEST(ReadRun, RefusesAFolderThatIsNotThere) {
  EXPECT_NE(refusal("/nowhere/at/all").find("expected a run's folder; found nothing at /nowhere/at/all"),
            std::string::npos);
}

TEST(ReadRun, RefusesAFile) {
  const RunFolder folder;
  const auto path = folder.write("r", run_lines({})) / "records.jsonl";
  EXPECT_NE(refusal(path).find("found a file at"), std::string::npos);
}

TEST(ReadRun, RefusesAFolderWithoutRecordsAndNamesTheRunsBelow) {
  const RunFolder folder;
  make_folder(folder.path("empty"));
  EXPECT_NE(refusal(folder.path("empty")).find("expected records.jsonl in it; found none; name the folder"),
            std::string::npos);
  folder.write("runs/a", run_lines({}));
  folder.write("runs/b", run_lines({}));
  const std::string message = refusal(folder.path("runs"));
  EXPECT_NE(message.find("it holds runs, name them"), std::string::npos) << message;
  EXPECT_NE(message.find("runs/a and"), std::string::npos) << message;
}

TEST(ReadRun, RefusesAnEmptyRecordsFile) {
  const RunFolder folder;
  EXPECT_NE(refusal(folder.write("a", "")).find("expected at least one whole record; found none"), std::string::npos);
  EXPECT_NE(refusal(folder.write("b", "{\"kind\":\"run\"")).find("found none"), std::string::npos);
}

TEST(ReadRun, RefusesADamagedLineByItsNumber) {
  const RunFolder folder;
  const std::string message = refusal(folder.write("r", "{\"kind\":\"run\"}\n{\"kind\":\"tra\x01\x02\n"));
  EXPECT_NE(message.find("line 2"), std::string::npos) << message;
  EXPECT_NE(refusal(folder.write("s", "[1,2]\n")).find("expected an object"), std::string::npos);
}

TEST(ReadRun, RefusesAFieldOfTheWrongTypeByRecordAndName) {
  const RunFolder folder;
  const std::string message =
      refusal(folder.write("r", "{\"kind\":\"run\"}\n{\"kind\":\"train\",\"tokens\":1,\"loss\":\"low\"}\n"));
  EXPECT_NE(message.find("record 2: expected a number as loss; found \"low\""), std::string::npos) << message;
  EXPECT_NE(refusal(folder.write("s", "{\"kind\":\"run\",\"name\":7}\n")).find("expected text as name"),
            std::string::npos);
  EXPECT_NE(refusal(folder.write("t", "{\"kind\":\"run\",\"layers\":[{\"heads\":0,\"head_dim\":8}]}\n"))
                .find("heads of width"),
            std::string::npos);
  EXPECT_NE(refusal(folder.write("u", "{\"kind\":\"run\",\"seed\":1e300}\n")).find("a whole number as seed"),
            std::string::npos);
  EXPECT_NE(refusal(folder.write("v", "{\"kind\":\"run\",\"layers\":3}\n")).find("a list as layers"),
            std::string::npos);
}

TEST(ReadRun, TakesTheMetricOfTheObjective) {
  const RunFolder folder;
  const auto lines = [](const std::string& name) {
    return "{\"kind\":\"run\",\"metric\":{\"name\":\"" + name + "\",\"less_is_better\":false}}\n" +
           "{\"kind\":\"eval\",\"tokens\":10,\"accuracy\":0.5,\"val_loss\":3}\n" +
           "{\"kind\":\"end\",\"tokens\":20,\"accuracy\":0.75,\"best_accuracy\":0.75}\n";
  };
  const prism::Run run = read_run(folder.write("r", lines("accuracy")));
  EXPECT_EQ(run.metric, (Metric{"accuracy", false}));
  ASSERT_EQ(run.valid.size(), 2U);
  EXPECT_DOUBLE_EQ(run.valid[0].loss, 0.5);
  EXPECT_DOUBLE_EQ(run.valid[1].loss, 0.75);
  EXPECT_NE(refusal(folder.write("s", lines("<b>"))).find("unlike other fields of records, as metric's name"),
            std::string::npos);
}

TEST(ReadRun, RefusesADamagedRecipe) {
  const RunFolder folder;
  EXPECT_NE(refusal(folder.write("r", run_lines({}), "{\"name\":")).find("recipe.json"), std::string::npos);
}

}  // namespace
}  // namespace prism
