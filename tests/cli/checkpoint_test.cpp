// Checkpoints that are damaged, incomplete or not the run's own: each is refused in one sentence.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

TEST(Checkpoint, WithAMissingOrCutFileIsRefusedByName) {
  const auto& shop = Workshop::folder();
  trained();
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "state.json", "config.json"}) {
    const auto copy = shop / "damaged";
    fs::remove_all(copy);
    fs::copy(shop / "trained", copy, fs::copy_options::recursive);
    const auto path = copy / "checkpoints/step-00000016" / file;
    fs::resize_file(path, fs::file_size(path) / 2);
    const auto cut = file == std::string("config.json")
                         ? run({"info", "damaged"})
                         : run({"train", "--out", "damaged", "--resume", "--threads", "1"});
    expect_sentence(cut, 2, {file});
    fs::remove(path);
    const auto missing = file == std::string("config.json")
                             ? run({"info", "damaged/checkpoints/step-00000016"})
                             : run({"train", "--out", "damaged", "--resume", "--threads", "1"});
    expect_sentence(missing, 2, {file});
  }
}

TEST(Checkpoint, WithTheStateOfAnotherRunIsRefused) {
  const auto& shop = Workshop::folder();
  trained();
  fs::copy(shop / "trained", shop / "foreign-state", fs::copy_options::recursive);
  const auto file = shop / "foreign-state/checkpoints/step-00000016/state.json";
  auto state = Json::parse(read_text(file));
  state["step"] = 999;
  write_text(file, state.dump());
  expect_sentence(run({"train", "--out", "foreign-state", "--resume", "--threads", "1"}), 2,
                  {"999", "checkpoint of this run"});
}

TEST(Checkpoint, WithTheTensorsOfAnotherStepIsRefused) {
  const auto& shop = Workshop::folder();
  trained();
  ASSERT_EQ(run({"train", "--recipe", "recipe.json", "--out", "other-seed", "--threads", "1", "--seed", "8"}).status,
            0);
  for (const char* file : {"model.safetensors", "optimizer.safetensors"}) {
    fs::remove_all(shop / "mixed");
    fs::copy(shop / "trained", shop / "mixed", fs::copy_options::recursive);
    fs::copy(shop / "other-seed/checkpoints/step-00000016" / fs::path(file),
             shop / "mixed/checkpoints/step-00000016" / fs::path(file), fs::copy_options::overwrite_existing);
    expect_sentence(run({"train", "--out", "mixed", "--resume", "--threads", "1"}), 2,
                    {"step 16", "found others", "restore the files"});
  }
  const auto file = shop / "mixed/checkpoints/step-00000016/state.json";
  const auto state = Json::parse(read_text(file));
  for (const auto& change :
       {Json{{"recipe_fingerprint", ""}}, Json{{"tensors_fingerprint", ""}}, Json{{"records_bytes", 0}}}) {
    auto changed = state;
    changed.update(change);
    write_text(file, changed.dump());
    expect_sentence(run({"train", "--out", "mixed", "--resume", "--threads", "1"}), 2, {change.begin().key()});
  }
}

TEST(Checkpoint, BesideARecipeWithoutABatchIsNoFinishedRun) {
  const auto& shop = Workshop::folder();
  trained();
  fs::copy(shop / "trained", shop / "no-batch", fs::copy_options::recursive);
  fs::remove(shop / "no-batch/records.jsonl");
  auto recipe = Json::parse(read_text(shop / "no-batch/recipe.json"));
  recipe["train"]["batch_rows"] = 0;
  write_text(shop / "no-batch/recipe.json", recipe.dump());
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "no-batch", "--threads", "1"}), 2,
                  {"found a run in no-batch", "--restart"});
}

TEST(Checkpoint, OfAFinishedRunWithoutRecordsIsNotDeleted) {
  const auto& shop = Workshop::folder();
  trained();
  fs::copy(shop / "trained", shop / "no-records", fs::copy_options::recursive);
  fs::remove(shop / "no-records/records.jsonl");
  expect_sentence(run({"train", "--recipe", "recipe.json", "--out", "no-records", "--threads", "1", "--restart"}), 2,
                  {"finished run"});
  expect_sentence(run({"train", "--out", "no-records", "--resume", "--threads", "1"}), 2,
                  {"records.jsonl", "restore the file"});
  EXPECT_TRUE(fs::exists(shop / "no-records/checkpoints/step-00000016/model.safetensors"));
}

}  // namespace
}  // namespace prism
