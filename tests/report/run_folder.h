// Run folders for tests, with records as a trainer writes them.
//
//   RunFolder folder;
//   folder.write("prism_s1", run_lines({.name = "prism", .seed = 1, .losses = {5.0, 4.0}}));
//   const Run run = read_run(folder.path("prism_s1"));
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "prism/core/files.h"
#include "prism/report/compare/compare.h"
#include "tests/core/temporary_folder.h"

namespace prism {

class RunFolder {
 public:
  std::filesystem::path path(const std::string& name) const { return root_.path() / name; }

  /// Writes records.jsonl, and recipe.json unless it is empty.
  std::filesystem::path write(const std::string& name, const std::string& records,
                              const std::string& recipe = "") const {
    make_folder(path(name));
    write_file(path(name) / "records.jsonl", records);
    if (!recipe.empty()) write_file(path(name) / "recipe.json", recipe);
    return path(name);
  }

 private:
  TemporaryFolder root_;
};

struct RunText {
  std::string name = "uniform", schedule = "2x2";
  int64_t seed = 1;
  std::vector<double> losses = {5.0, 4.5, 4.0};  ///< validation, every 1000 tokens
  bool end = true;
  std::string more = "";  ///< additional complete lines before the end record
};

/// A run of two layers with 2 heads of width 8; training losses are 0.5 above the validation losses.
inline std::string run_lines(const RunText& run) {
  std::string text = fmt::format(
      R"({{"kind":"run","step":0,"tokens":0,"seconds":0,"prism_format":1,"name":"{}","schedule":"{}","parameters":8421376,)"
      R"("flops_per_token":50000000,"layers":[{{"heads":2,"kv_heads":2,"head_dim":8,"ffn_width":32}},)"
      R"({{"heads":4,"kv_heads":2,"head_dim":4,"ffn_width":32}}],"seed":{},"total_tokens":{},"dtype":"bfloat16","threads":2,)"
      R"("cpu":"Test CPU","peak_gflops":500.4}})"
      "\n",
      run.name, run.schedule, run.seed, 1000 * std::max<size_t>(3, run.losses.size()));
  int64_t tokens = 0;
  for (const double loss : run.losses) {
    tokens += 1000;
    text += fmt::format(
        R"({{"kind":"train","step":{0},"tokens":{1},"seconds":{0},"loss":{2},"tokens_per_s":1000,"peak_share":0.4}})"
        "\n",
        tokens / 100, tokens, loss + 0.5);
    text += fmt::format(R"({{"kind":"eval","step":{0},"tokens":{1},"seconds":{0},"val_loss":{2},"val_tokens":64}})"
                        "\n",
                        tokens / 100, tokens, loss);
  }
  text += run.more;
  if (run.end && !run.losses.empty()) {
    text += fmt::format(R"({{"kind":"end","step":{0},"tokens":{1},"seconds":70,"val_loss":{2},"best_val_loss":{2},)"
                        R"("tokens_per_s":1234.4,"peak_memory_bytes":104857600}})"
                        "\n",
                        tokens / 100, tokens, run.losses.back());
  }
  return text;
}

/// Two models, three seeds each; prism is lower by 0.1, 0.2 and 0.3.
inline Comparison six_runs(const RunFolder& folder) {
  std::vector<Run> runs;
  for (int64_t seed = 1; seed <= 3; ++seed) {
    const double own = 0.01 * static_cast<double>(seed), gap = 0.1 * static_cast<double>(seed);
    const auto write = [&](const std::string& name, double last) {
      return read_run(folder.write(fmt::format("{}_{}", name, seed),
                                   run_lines({.name = name, .seed = seed, .losses = {5.0, 4.5, last}}),
                                   fmt::format(R"({{"seed":{},"rate":{}}})", seed, name == "prism" ? 2 : 1)));
    };
    runs.push_back(write("uniform", 4.0 + own));
    runs.push_back(write("prism", 4.0 + own - gap));
  }
  return compare_runs(std::move(runs));
}

}  // namespace prism
