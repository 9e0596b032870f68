// Runs prism attend as a program in another language would: reads a safetensors file, writes another.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "tests/cli/commands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Float32 {
  std::string name;
  std::vector<int64_t> shape;
};

/// Writes a safetensors file of random values: the header's length, the header, the data.
void write_random(const std::string& file, const std::vector<Float32>& tensors) {
  Random random(1);
  Json header = Json::object();
  std::string data;
  for (const auto& [name, shape] : tensors) {
    const size_t begin = data.size();
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    for (int64_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(4 * random.uniform() - 2);
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const uint64_t length = text.size();
  write_text(Workshop::folder() / file,
             std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data);
}

void write_input() {
  write_random("qkv.safetensors", {{"q", {1, 4, 300, 16}}, {"k", {1, 2, 400, 16}}, {"v", {1, 2, 400, 24}}});
}

TEST(AttendCommand, WritesTheMaskAndWhatItGives) {
  write_input();
  const auto outcome = run({"attend", "qkv.safetensors", "--set", "p=0.5", "--set", "last_dense=0", "--set",
                            "block_size=64", "--output", "out.safetensors", "--recall", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto row = Json::parse(outcome.out);
  EXPECT_EQ(row["selector"], "spectral");
  EXPECT_EQ(row["tokens"], 300);
  const auto [header, data] = read_safetensors("out.safetensors");
  EXPECT_EQ(header["mask"]["dtype"], "U8");
  EXPECT_EQ(header["mask"]["shape"], Json({1, 4, 6, 7}));  // rows of queries 100 to 399, blocks of keys 0 to 399
  EXPECT_EQ(header["out"]["shape"], Json({1, 4, 300, 24}));
  EXPECT_EQ(header["lse"]["shape"], Json({1, 4, 300}));
  int kept = 0;
  for (size_t i = header["mask"]["data_offsets"][0]; i < header["mask"]["data_offsets"][1]; ++i) kept += data[i];
  const int visible = 4 * (2 + 3 + 4 + 5 + 6 + 7);
  EXPECT_NEAR(row["density"].get<double>(), static_cast<double>(kept) / visible, 1e-12);
  EXPECT_LT(row["density"], 1);
  EXPECT_LT(row["recall"], 1);
  EXPECT_GT(row["recall"], row["least_recall"]);
}

TEST(AttendCommand, TakesAMaskFromAFileAndDrawsIt) {
  write_input();
  ASSERT_EQ(run({"attend", "qkv.safetensors", "--set", "p=0.5", "--set", "query_block=64", "--set", "key_block=32",
                 "--output", "first.safetensors", "--save-mask", "lists.safetensors", "--picture", "mask.svg",
                 "--picture-head", "3"})
                .status,
            0);
  const std::string svg = read_text(Workshop::folder() / "mask.svg");
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("spectral"), std::string::npos);
  const auto [header, data] = read_safetensors("first.safetensors");
  // The mask as lists, which store the block sizes, and as booleans, which do not.
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--mask", "lists.safetensors"},
                                                {"--mask", "first.safetensors", "--mask-blocks", "64,32"}}) {
    std::vector<std::string> all = {"attend", "qkv.safetensors", "--output", "again.safetensors"};
    all.insert(all.end(), words.begin(), words.end());
    const auto outcome = run(all);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const auto [again, bytes] = read_safetensors("again.safetensors");
    EXPECT_EQ(again, header);
    EXPECT_EQ(bytes, data);
  }
  write_random("odd.safetensors", {{"q", {1, 2, 64, 15}}, {"k", {1, 2, 64, 15}}, {"v", {1, 2, 64, 16}}});
  expect_sentence(run({"attend", "odd.safetensors"}), 2, {"even width", "found 15", "--rotary-dims 14"});
  EXPECT_EQ(run({"attend", "odd.safetensors", "--rotary-dims", "14"}).status, 0);
  expect_sentence(run({"attend", "qkv.safetensors", "--mask", "first.safetensors"}), 2, {"mask"});
  expect_sentence(run({"attend", "qkv.safetensors", "--mask", "qkv.safetensors"}), 2, {"counts"});
  expect_sentence(run({"attend", "qkv.safetensors", "--mask", "lists.safetensors", "--set", "p=1"}), 2, {"--set"});
  expect_sentence(run({"attend", "qkv.safetensors", "--mask-blocks", "64,64"}), 2, {"--mask"});
  expect_sentence(run({"attend", "qkv.safetensors", "--mask", "lists.safetensors", "--mask-blocks", "128,64"}), 2,
                  {"block sizes stored in", "64 and 32", "128 and 64"});
  expect_sentence(run({"attend", "qkv.safetensors", "--output", "qkv.safetensors"}), 2, {"qkv.safetensors twice"});
  expect_sentence(run({"attend", "qkv.safetensors", "--output", "text.txt/o.st"}), 2,
                  {"expected a folder for text.txt/o.st; found the file text.txt; choose another place"});
  expect_sentence(run({"attend", "qkv.safetensors", "--output", "none/o.st"}), 2, {"found none at none; make it"});
  expect_sentence(run({"attend", "qkv.safetensors", "--output", "o.st", "--save-mask", "./o.st"}), 2, {"twice"});
  expect_sentence(run({"attend", "qkv.safetensors", "--mask", "first.safetensors", "--mask-blocks", "48,32"}), 2,
                  {"48"});
  expect_sentence(run({"attend", "qkv.safetensors", "--mask", "first.safetensors", "--mask-blocks", "64,0"}), 2,
                  {"--mask-blocks", "0"});
  expect_sentence(run({"attend", "qkv.safetensors", "--picture", "x.svg", "--picture-head", "4"}), 2, {"0 to 3", "4"});
  EXPECT_FALSE(fs::exists(Workshop::folder() / "x.svg"));
  expect_sentence(run({"attend", "qkv.safetensors", "--selector", "spectral:p=0.5"}), 2, {"give spectral without"});
  const auto unwritable = run({"attend", "qkv.safetensors", "--output", "o.st", "--picture", "/proc/x.svg"});
  EXPECT_EQ(unwritable.status, 1);
  EXPECT_EQ(unwritable.err.find("[attend] could not write /proc/x.svg"), 0u) << unwritable.err;
  EXPECT_FALSE(fs::exists(Workshop::folder() / "o.st")) << "found before anything is computed";
}

TEST(SlowAttendCommand, DecidesByCostsThatAreMeasuredOnce) {
  write_input();
  const TemporaryFolder cache;
  ::setenv("PRISM_CACHE", cache.path().c_str(), 1);
  const auto attend = [] {
    return run({"attend", "qkv.safetensors", "--selector", "auto", "--set", "p=0.5", "--set", "block_size=32", "--set",
                "overhead=1", "--threads", "1", "--json"});
  };
  const auto first = attend();
  ASSERT_EQ(first.status, 0) << first.err;
  const fs::path file = cache.path() / "prefill_cost.json";
  if (!fs::exists(file)) GTEST_SKIP() << "no attention that leaves blocks out";
  const std::string kept = read_text(file);
  EXPECT_NE(first.err.find("measures the costs of attention with heads"), std::string::npos) << first.err;
  const auto second = attend();
  EXPECT_EQ(second.err, "");
  EXPECT_EQ(Json::parse(second.out)["density"], Json::parse(first.out)["density"]);
  EXPECT_EQ(read_text(file), kept) << "not measured again";
  // The costs in the file decide.
  const auto density = [&](double sparse) {
    auto costs = Json::parse(kept);
    for (auto& cost : costs) {
      for (auto& value : cost) value = 1e-15;
      cost["dense_pair"] = 1e-9;
      cost["sparse_pair"] = sparse;
    }
    write_text(file, costs.dump());
    return Json::parse(attend().out)["density"].get<double>();
  };
  EXPECT_LT(density(1e-12), 1);
  EXPECT_EQ(density(1e-6), 1);
  // If the file cannot be written, there is one note.
  ::setenv("PRISM_CACHE", (Workshop::folder() / "qkv.safetensors").c_str(), 1);
  const auto lost = attend();
  ::unsetenv("PRISM_CACHE");
  EXPECT_EQ(lost.status, 0);
  EXPECT_NE(lost.err.find("cannot be kept"), std::string::npos) << lost.err;
  EXPECT_EQ(std::count(lost.err.begin(), lost.err.end(), '\n'), 2) << lost.err;
}

TEST(AttendCommand, TakesPositionsOfSeveralAxes) {
  write_input();
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"attend",        "qkv.safetensors", "--set",      "p=0.5", "--set",
                                      "block_size=32", "--set",           "bands=auto", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  };
  const auto density = [&](const std::vector<std::string>& more) {
    return Json::parse(with(more).out)["density"].get<double>();
  };
  const double text = density({});
  EXPECT_EQ(density({"--mrope-sections", "4,2,2"}), text);
  EXPECT_EQ(density({"--mrope-sections", "4,2,2", "--mrope-interleaved"}), text);
  EXPECT_NE(density({"--mrope-sections", "4,2,2", "--mrope-steps", "0,0,1"}), text);
  EXPECT_EQ(with({"--mrope-sections", "4,2,3"}).status, 2);
}

TEST(AttendCommand, TakesTheAnglesAndTheLayoutOfPairs) {
  // Without angles in the file, the options count; with angles, options that set them are refused.
  write_input();
  const auto density = [&](const std::string& file, const std::vector<std::string>& more) {
    std::vector<std::string> words = {"attend",        file,    "--set",      "p=0.5", "--set",
                                      "block_size=32", "--set", "bands=auto", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const auto outcome = run(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return Json::parse(outcome.out)["density"].get<double>();
  };
  EXPECT_NE(density("qkv.safetensors", {"--rotary", "interleaved"}), density("qkv.safetensors", {}));
  write_random("angles.safetensors",
               {{"q", {1, 4, 300, 16}}, {"k", {1, 2, 400, 16}}, {"v", {1, 2, 400, 24}}, {"inverse_frequencies", {8}}});
  const double with_angles = density("angles.safetensors", {});
  expect_sentence(run({"attend", "angles.safetensors", "--rotary-base", "1000000"}), 2,
                  {"beside inverse_frequencies", "leave it out"});
  expect_sentence(run({"attend", "qkv.safetensors", "--mrope-interleaved"}), 2, {"--mrope-sections", "add them"});
  EXPECT_NE(with_angles, density("qkv.safetensors", {"--rotary-base", "1000000"}));
  write_random("many.safetensors",
               {{"q", {1, 1, 8, 16}}, {"k", {1, 1, 8, 16}}, {"v", {1, 1, 8, 16}}, {"inverse_frequencies", {9}}});
  expect_sentence(run({"attend", "many.safetensors"}), 2, {"at most 8 angles", "9"});
}

TEST(AttendCommand, LeavesOutTilesThatHardlyCount) {
  write_input();
  const auto out_of = [&](const std::string& share) {
    const auto outcome = run(
        {"attend", "qkv.safetensors", "--selector", "dense", "--skip-share", share, "--output", "skipped.safetensors"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return read_safetensors("skipped.safetensors").second;
  };
  EXPECT_EQ(out_of("0"), out_of("1e-30"));
  EXPECT_NE(out_of("0"), out_of("1"));
  expect_sentence(run({"attend", "qkv.safetensors", "--skip-share", "2"}), 2, {"--skip-share"});
}

TEST(AttendCommand, SaysWhatRoundingToBlocksAdds) {
  write_input();
  const auto outcome = run({"attend", "qkv.safetensors", "--selector", "vertical_slash", "--set", "vertical=30",
                            "--set", "slash=100", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto row = Json::parse(outcome.out);
  EXPECT_EQ(row["settings"]["vertical"], 30);
  EXPECT_EQ(row["settings"]["preset"], "changed");
  EXPECT_LT(row["unrounded_density"], row["density"]);
  for (const auto& head : row["heads"]) EXPECT_LT(head["unrounded_density"], head["density"]);
}

TEST(AttendCommand, KeepsAllAttentionWhereItKeepsAllBlocks) {
  write_input();
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"--selector", "dense"}, {"--set", "p=1"}, {"--selector", "oracle", "--set", "p=1"}}) {
    std::vector<std::string> all = {"attend", "qkv.safetensors", "--recall", "--json"};
    all.insert(all.end(), words.begin(), words.end());
    const auto outcome = run(all);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(Json::parse(outcome.out)["density"], 1);
    EXPECT_NEAR(Json::parse(outcome.out)["least_recall"].get<double>(), 1, 1e-9);
  }
}

TEST(AttendCommandInput, ThatIsWrongGetsASentence) {
  write_input();
  expect_sentence(run({"attend", "nowhere.safetensors"}), 2, {"nowhere.safetensors"});
  expect_sentence(run({"attend", "qkv.safetensors", "--selector", "spectrum"}), 2, {"did you mean spectral?"});
  expect_sentence(run({"attend", "qkv.safetensors", "--set", "q=1"}), 2, {"--set: expected", "\"q\""});
  expect_sentence(run({"attend", "qkv.safetensors", "--set", "p"}), 2, {"="});
  expect_sentence(run({"attend", "qkv.safetensors", "--set", "block_size=100"}), 2, {"100"});
  expect_sentence(run({"attend", "qkv.safetensors", "--rotary", "spiral"}), 2, {"half_split"});
  expect_sentence(run({"attend", "qkv.safetensors", "--rotary-dims", "17"}), 2, {"17"});
  write_random("few.safetensors", {{"q", {1, 4, 300, 16}}, {"k", {1, 2, 200, 16}}, {"v", {1, 2, 200, 16}}});
  expect_sentence(run({"attend", "few.safetensors"}), 2, {"300", "200"});
  write_random("flat.safetensors", {{"q", {300, 16}}, {"k", {1, 2, 200, 16}}, {"v", {1, 2, 200, 16}}});
  expect_sentence(run({"attend", "flat.safetensors"}), 2, {"[B, H, T, D]"});
  write_random("half.safetensors", {{"q", {1, 1, 8, 16}}, {"k", {1, 1, 8, 16}}});
  expect_sentence(run({"attend", "half.safetensors"}), 2, {"v"});
  EXPECT_FALSE(fs::exists(Workshop::folder() / "out2.safetensors"));
}

}  // namespace
}  // namespace prism
