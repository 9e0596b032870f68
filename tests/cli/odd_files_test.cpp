// Puts pipes, sockets, devices, links and folders where commands read regular files. Every command must name the path
// in one sentence, and must not wait.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "tests/cli/commands.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

void make_socket(const fs::path& path) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << path;
  ::close(socket);
}

/// Puts something that is not a regular file at `path`.
using Maker = std::function<void(const fs::path& path)>;

/// Makers by the word that error messages use for the kind.
const std::map<std::string, Maker>& odd_files() {
  static const std::map<std::string, Maker> makers = {
      {"a pipe", [](const fs::path& path) { EXPECT_EQ(::mkfifo(path.c_str(), 0666), 0); }},
      {"a socket", make_socket},
      {"a device", [](const fs::path& path) { fs::create_symlink("/dev/zero", path); }},
      {"Too many levels of symbolic links", [](const fs::path& path) { fs::create_symlink(path, path); }},
      {"a folder", [](const fs::path& path) { fs::create_directory(path); }}};
  return makers;
}

struct OddFile {
  const char* title;
  std::vector<std::string> words;  ///< ODD stands for the odd file's name
  bool takes_folders = false;

  friend std::ostream& operator<<(std::ostream& out, const OddFile& file) { return out << file.title; }
};

const OddFile kReaders[] = {
    {"GenerateReadsAPrompt", {"generate", "MODEL", "--prompt-file", "ODD"}},
    {"EvalReadsAText", {"eval", "MODEL", "ODD"}, true},
    {"AnalyseReadsAText", {"analyse", "entropy", "MODEL", "ODD"}, true},
    {"TokenizeReadsAText", {"tokenize", "ODD", "--tokenizer", "tokenizer", "--out", "odd_out"}, true},
    {"TokenizeReadsATokenizer", {"tokenize", "text.txt", "--tokenizer", "ODD", "--out", "odd_out"}, true},
    {"TokenizerTrainReadsAText", {"tokenizer", "train", "ODD", "--vocab-size", "300", "--out", "odd_out"}, true},
    {"TokenizerEncodeReadsAText", {"tokenizer", "encode", "--tokenizer", "tokenizer", "--file", "ODD"}, true},
    {"TrainReadsARecipe", {"train", "--recipe", "ODD", "--out", "odd_out"}},
    {"SweepReadsAFile", {"sweep", "ODD", "--out", "odd_out"}},
    {"InfoReadsARecipe", {"info", "ODD"}, true},
    {"AttendReadsTensors", {"attend", "ODD"}},
    {"BenchReadsAMix", {"bench", "prefill", "--mix", "ODD", "--tokens", "64"}},
    {"ReportReadsPrefills", {"report", "--prefill", "ODD", "--out", "odd.html"}},
    {"ReportReadsAnalyses", {"report", "--analysis", "ODD", "--out", "odd.html"}},
};

class OddInput : public testing::TestWithParam<OddFile> {};

TEST_P(OddInput, IsNamedAndRefused) {
  for (const auto& [kind, make] : odd_files()) {
    if (kind == "a folder" && GetParam().takes_folders) continue;
    const TemporaryFolder folder;
    const fs::path odd = folder.path() / "odd.txt";
    make(odd);
    auto words = GetParam().words;
    for (auto& word : words) word = word == "ODD" ? odd.string() : word == "MODEL" ? trained() : word;
    const auto outcome = run(words);
    expect_sentence(outcome, 2, {odd.string(), kind});
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    for (const char* left : {"odd_out", "odd.html"}) EXPECT_FALSE(fs::exists(Workshop::folder() / left)) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(OfACommand, OddInput, testing::ValuesIn(kReaders),
                         [](const auto& row) { return row.param.title; });

struct OddPart {
  const char* title;
  std::string copied, part;        ///< a folder of the workshop, and the file to replace in its copy
  std::vector<std::string> words;  ///< COPY stands for the copied folder

  friend std::ostream& operator<<(std::ostream& out, const OddPart& row) { return out << row.title; }
};

const OddPart kParts[] = {
    {"ConfigOfAModel", "trained/checkpoints/step-00000016", "config.json", {"info", "COPY"}},
    {"WeightsOfAModel", "trained/checkpoints/step-00000016", "model.safetensors", {"generate", "COPY", "The"}},
    {"TokenizerOfAModel", "trained/checkpoints/step-00000016", "tokenizer.json", {"generate", "COPY", "The"}},
    {"RecordsOfARun", "trained", "records.jsonl", {"report", "COPY", "--out", "odd.html"}},
    {"RecordsOfARunToResume", "trained", "records.jsonl", {"train", "--out", "COPY", "--resume"}},
    {"RecipeOfARunToResume", "trained", "recipe.json", {"train", "--out", "COPY", "--resume"}},
    {"LockOfARunToResume", "trained", ".lock", {"train", "--out", "COPY", "--resume"}},
    {"StateOfARunToResume", "trained", "checkpoints/step-00000016/state.json", {"train", "--out", "COPY", "--resume"}},
    {"MomentsOfARunToResume",
     "trained",
     "checkpoints/step-00000016/optimizer.safetensors",
     {"train", "--out", "COPY", "--resume"}},
    {"Shards",
     "data",
     "train_000000.bin",
     {"train", "--recipe", "recipe.json", "--out", "odd_out", "--data.folder", "COPY"}},
    {"DescriptionOfShards",
     "data",
     "data.json",
     {"train", "--recipe", "recipe.json", "--out", "odd_out", "--data.folder", "COPY"}},
};

class OddPartOfAFolder : public testing::TestWithParam<OddPart> {};

TEST_P(OddPartOfAFolder, IsNamedAndRefused) {
  trained();
  for (const auto& [kind, make] : odd_files()) {
    const TemporaryFolder folder;
    const fs::path copy = folder.path() / "copy";
    fs::copy(Workshop::folder() / GetParam().copied, copy, fs::copy_options::recursive);
    fs::remove_all(copy / GetParam().part);
    make(copy / GetParam().part);
    auto words = GetParam().words;
    for (auto& word : words) word = word == "COPY" ? copy.string() : word;
    const bool is_link = GetParam().part == ".lock" && fs::is_symlink(copy / ".lock");
    expect_sentence(run(words), 2, {fs::path(GetParam().part).filename().string(), is_link ? "a link" : kind});
    for (const char* left : {"odd_out", "odd.html"}) EXPECT_FALSE(fs::exists(Workshop::folder() / left)) << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(OfACommand, OddPartOfAFolder, testing::ValuesIn(kParts),
                         [](const auto& row) { return row.param.title; });

TEST(ShortenedShard, EndsTrainingWithOneSentenceAndStatusOne) {
  trained();
  const TemporaryFolder folder;
  const fs::path copy = folder.path() / "copy";
  fs::copy(Workshop::folder() / "data", copy, fs::copy_options::recursive);
  const pid_t child = start_prism({"train", "--recipe", (Workshop::folder() / "recipe.json").string(), "--out", "run",
                                   "--data.folder", copy.string(), "--train.tokens", "100M", "--threads", "1"},
                                  folder.path());
  ASSERT_TRUE(wait_for_file(folder.path() / "run/records.jsonl"));
  fs::resize_file(copy / "train_000000.bin", 1);
  const auto outcome = wait_for(child, folder.path());
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_NE(outcome.err.find("another program made the file shorter"), std::string::npos) << outcome.err;
}

}  // namespace
}  // namespace prism
