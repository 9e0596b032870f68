// A fixture that trains a tiny language model on made-up tokens.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "prism/core/random.h"
#include "prism/core/records.h"
#include "prism/formats/token_shard.h"
#include "prism/training/objective/language_modelling.h"
#include "prism/training/trainer.h"
#include "tests/core/temporary_folder.h"

namespace prism {

inline constexpr int64_t kVocabulary = 40, kContext = 16;

class TinyRun : public testing::Test {
 protected:
  TinyRun() {
    put("train_000000.bin", 4000, 1);
    put("valid_000000.bin", 500, 2);
  }

  /// Writes tokens that each add 1 or 2 to the token before, so that a model can learn them.
  void put(const std::string& name, size_t count, uint64_t seed, const std::string& data = "data") {
    Random random(seed);
    std::vector<int32_t> tokens(count, 0);
    for (size_t i = 1; i < count; ++i)
      tokens[i] = static_cast<int32_t>((static_cast<uint64_t>(tokens[i - 1]) + 1 + random.below(2)) % kVocabulary);
    make_folder(folder_.path() / data);
    TokenShardWriter writer(folder_.path() / data / name, kVocabulary);
    writer.write(tokens);
    writer.commit();
  }

  Recipe recipe() const {
    Recipe r;
    r.name = "run";
    r.model.vocab_size = kVocabulary;
    r.model.d_model = 16;
    r.model.context = kContext;
    r.model.schedule = "1x1,2x1";
    r.model.ffn_width = 24;
    expand_shorthand(r.model);
    r.data.folder = (folder_.path() / "data").string();
    r.train.tokens = 64 * kContext;
    r.train.batch_rows = 8;
    r.train.learning_rate = 1e-2;
    r.train.dtype = "float32";
    r.train.log_steps = 1;
    return r;
  }

  /// Gives each layer two heads and a head budget.
  static void give_budgets(Recipe& r) {
    for (auto& layer : r.model.layers) {
      layer.heads = layer.kv_heads = 2;
      layer.budget.kind = "learned";
    }
  }

  /// Trains `r` into a new folder and returns its records.
  std::vector<Json> train(const Recipe& r, const std::string& name) {
    auto objective = std::make_unique<LanguageModelling>();
    const auto& language_modelling = *objective;
    Trainer trainer(r, folder_.path() / name, std::move(objective));
    trainer.prepare(Start::fresh);
    decoder_ = language_modelling.decoder();
    EXPECT_TRUE(trainer.run().finished);
    return read_records(folder_.path() / name / "records.jsonl");
  }

  static std::vector<double> values(const std::vector<Json>& records, const char* kind, const char* field) {
    std::vector<double> found;
    for (const auto& record : records)
      if (record["kind"] == kind) found.push_back(record[field].get<double>());
    return found;
  }

  /// A trainer after prepare().
  static Trainer prepared(const Recipe& r, const std::filesystem::path& run, Start start) {
    Trainer trainer(r, run, make_objective(r));
    trainer.prepare(start);
    return trainer;
  }
  Trainer resumed(const std::string& name) const {
    return prepared(load_run_recipe(folder_.path() / name), folder_.path() / name, Start::resume);
  }

  std::vector<std::string> checkpoints(const std::string& run, const std::string& prefix) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() / run / "checkpoints"))
      if (entry.path().filename().string().starts_with(prefix)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }

  /// Trains `r` into the folder "whole", goes on in a copy from its checkpoint of step 3, and expects the same records.
  void expect_resumes(Recipe r, const std::vector<const char*>& fields) {
    r.train.checkpoint_every_tokens = 8 * kContext;
    r.train.keep_last = 30;
    const auto records = train(r, "whole");
    std::filesystem::copy(folder_.path() / "whole", folder_.path() / "cut", std::filesystem::copy_options::recursive);
    for (const auto& name : checkpoints("cut", "step-"))
      if (name > "step-00000003") std::filesystem::remove_all(folder_.path() / "cut/checkpoints" / name);
    EXPECT_TRUE(resumed("cut").run().finished);
    const auto again = read_records(folder_.path() / "cut/records.jsonl");
    for (const char* field : fields) EXPECT_EQ(values(again, "train", field), values(records, "train", field)) << field;
  }

  TemporaryFolder folder_;
  Decoder decoder_{nullptr};
};

}  // namespace prism
