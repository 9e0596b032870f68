// A folder with a small recipe and its data, for tests that plan sweeps without running them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prism/core/files.h"
#include "prism/data/loader.h"
#include "prism/formats/token_shard.h"
#include "prism/training/sweep/sweep.h"
#include "tests/core/temporary_folder.h"

namespace prism {

class SweepFolder : public testing::Test {
 protected:
  SweepFolder() {
    put_data("data", "one");
    write_file(path("base.json"), fmt::format(R"({{"from": "a test", "model": {{"vocab_size": 9, "d_model": 16,
      "context": 8, "schedule": "2x2", "ffn_width": 8}}, "data": {{"folder": "{}"}}, "train": {{"tokens": 640}}}})",
                                              path("data")));
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  /// Writes a dataset whose tokenizer has that fingerprint.
  void put_data(const std::string& name, const std::string& fingerprint) const {
    make_folder(path(name));
    for (const char* split : {"train", "valid"}) {
      TokenShardWriter writer(path(name) + "/" + split + "_000000.bin", 9);
      writer.write(std::vector<int32_t>(kTokens, 3));
      writer.commit();
    }
    DatasetInfo info;
    info.vocab_size = 9;
    info.train_tokens = info.valid_tokens = kTokens;
    info.tokenizer_fingerprint = fingerprint;
    write_file(path(name) + "/data.json", to_text(fields_to_json(info)));
  }

  Sweep load(const std::string& text, const std::vector<Override>& overrides = {}) const {
    write_file(path("sweep.json"), text);
    return load_sweep(path("sweep.json"), overrides);
  }

  /// Writes the files of a run that has begun or is finished.
  void put_run(const std::string& folder, const Recipe& recipe, bool finished) const {
    make_folder(path(folder));
    auto complete_recipe = recipe;
    complete_recipe.model.vocab_size = 9;
    complete(complete_recipe.model);
    write_file(path(folder) + "/recipe.json", to_text(fields_to_json(complete_recipe)));
    write_file(path(folder) + "/records.jsonl",
               std::string(R"({"kind":"run"})") + "\n" + (finished ? std::string(R"({"kind":"end"})") + "\n" : ""));
  }

  static constexpr int64_t kTokens = 100000;  ///< more than a step of any recipe in configs/
  TemporaryFolder folder_;
};

}  // namespace prism
