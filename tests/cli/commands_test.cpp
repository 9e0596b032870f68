// Runs every command but train as a user does: checks its help, its result, and that every wrong input gets one
// sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "prism/core/fields.h"
#include "tests/cli/commands.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

TEST(Help, OfEveryCommandNamesItsOptionsAndExitStatus) {
  const auto top = run({"--help"});
  EXPECT_EQ(top.status, 0);
  for (const std::string command : {"train", "sweep", "generate", "chat", "eval", "analyse", "attend", "info", "bench",
                                    "report", "tokenizer", "tokenize"}) {
    EXPECT_NE(top.out.find("  " + command + " "), std::string::npos) << command;
    const auto help = run({command, "--help"});
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_NE(help.out.find("--"), std::string::npos) << command;
    EXPECT_NE(help.out.find("Exit status"), std::string::npos) << command;
    EXPECT_EQ(help.err, "") << command;
  }
  EXPECT_NE(run({"train", "--help"}).out.find("train.checkpoint_every_tokens"), std::string::npos);
}

TEST(Command, UnknownIsAnsweredWithTheNearest) {
  expect_sentence(run({"trian"}), 2, {"did you mean train?"});
  EXPECT_EQ(run({}).status, 2);
  expect_sentence(run({"info", "recipe.json", "--jsno"}), 2, {"--jsno"});
}

TEST(Command, ArgumentsThatDoNotFitAreAnsweredWithTheWayOut) {
  expect_sentence(run({"generate"}), 2, {"expected MODEL; found none; see prism generate --help."});
  expect_sentence(run({"generate", "x", "hi", "there"}), 2, {"found there; put a text of several words in quotes"});
  expect_sentence(run({"generate", "x", "--temperature"}), 2, {"--temperature: expected a value; found none"});
  expect_sentence(run({"info", "x", "y"}), 2, {"found y; leave it out, or see prism info --help."});
  expect_sentence(run({"analyse", "entropy", "x", "y", "z"}), 2, {"found z; put a text of several words in quotes"});
  expect_sentence(run({"train", "--threads=x"}), 2, {"--threads: expected 0 to 1024; found x; change it."});
  expect_sentence(run({"info", "x", "--vocab-size", "1", "--vocab-size", "2"}), 2,
                  {"--vocab-size: expected one value; found 2; leave one out."});
  expect_sentence(run({"analyse", "entropy", "x", "--tokens", "few"}), 2,
                  {"--tokens: expected a whole number; found few; change it."});
  expect_sentence(run({"bench", "attention", "--head-dims", "8", "9.5"}), 2,
                  {"--head-dims: expected a whole number; found 9.5; change it."});
  expect_sentence(run({"bench", "budgets", "--shares", "half"}), 2, {"--shares: expected a number; found half"});
  expect_sentence(run({"attend", "x", "--skip-share", "2"}), 2, {"--skip-share: expected 0 to 1; found 2; change it."});
  expect_sentence(run({"attend", "x", "--mask", "m", "--mask-blocks", "7,128"}), 2,
                  {"--mask-blocks: expected one of 32, 64, 128, 256; found 7"});
  expect_sentence(run({"bench", "attention", "--passes", "x"}), 2, {"--passes: expected one of", "found x"});
}

TEST(OpenMp, SpinsBrieflyUnlessTheUserSaysOtherwise) {
  const auto shown = [](const std::vector<std::pair<const char*, const char*>>& environment) {
    return run_prism({"--version"}, Workshop::folder(), "",
                     [&] {
                       for (const char* name : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"}) ::unsetenv(name);
                       ::setenv("OMP_DISPLAY_ENV", "VERBOSE", 1);
                       for (const auto& [name, value] : environment) ::setenv(name, value, 1);
                     })
        .err;
  };
  EXPECT_CONTAINS(shown({}), "GOMP_SPINCOUNT = '5000'");
  EXPECT_CONTAINS(shown({{"GOMP_SPINCOUNT", "77"}}), "GOMP_SPINCOUNT = '77'");
  EXPECT_CONTAINS(shown({{"OMP_WAIT_POLICY", "ACTIVE"}}), "OMP_WAIT_POLICY = 'ACTIVE'");
  EXPECT_EQ(shown({{"OMP_WAIT_POLICY", "ACTIVE"}}).find("GOMP_SPINCOUNT = '5000'"), std::string::npos);
}

TEST(Output, ThatIsClosedIsAFailure) {
  const auto outcome = run_prism({"--version"}, Workshop::folder(), "", [] { ::close(STDOUT_FILENO); });
  expect_sentence(outcome, 1, {"standard output"});
  // The help is larger than standard output's buffer.
  for (const char* target : {"/dev/full", "/dev/null"}) {
    const auto full = run_prism({"train", "--help"}, Workshop::folder(), "",
                                [&] { ::dup2(::open(target, O_WRONLY), STDOUT_FILENO); });
    EXPECT_EQ(full.status, std::string(target) == "/dev/full" ? 1 : 0) << full.err;
    EXPECT_EQ(full.err, full.status == 0 ? ""
                                         : "[output] could not write to standard output, which is closed or full; "
                                           "redirect it to a file.\n");
  }
}

TEST(Generate, ContinuesAPromptAndRepeatsWithTheSeed) {
  const auto words = [](const std::string& seed) {
    return std::vector<std::string>{"generate", trained(), "The river", "--max-new-tokens", "8", "--temperature",
                                    "1",        "--seed",  seed,        "--threads",        "1"};
  };
  const auto first = run(words("5"));
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_FALSE(first.out.empty());
  EXPECT_EQ(run(words("5")).out, first.out);
  EXPECT_NE(run(words("6")).out, first.out);
}

TEST(Generate, ReadsThePromptThroughASelector) {
  std::vector<std::string> words = {"generate", trained(),   "The river", "--max-new-tokens", "4", "--temperature",
                                    "0",        "--prefill", "spectral",  "--threads",        "1"};
  const auto outcome = run(words);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("density"), std::string::npos) << outcome.err;
  words.push_back("--json");
  EXPECT_EQ(Json::parse(run(words).out)["prefill"]["selector"], "spectral");
}

TEST(HeadBudgets, OfALanguageModelAreTrainedUsedAndEvaluated) {
  const auto made =
      run({"train", "--recipe", "recipe.json", "--out", "budgets", "--threads", "1", "--model.budget.kind", "learned"});
  ASSERT_EQ(made.status, 0) << made.err;
  for (const char* flag : {"--json", "--ignore-eos"}) {
    const auto text = run({"generate", "budgets", "The keeper", "--max-new-tokens", "5", flag, "--threads", "1"});
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_FALSE(text.out.empty());
  }
  const auto plain = run({"eval", "budgets", "text.txt", "--threads", "1"});
  EXPECT_EQ(plain.status, 0) << plain.err;
  EXPECT_NE(plain.out.find("head budgets read"), std::string::npos) << plain.out;
  const auto paired = run({"eval", trained(), "text.txt", "--against", "budgets", "--threads", "1", "--json"});
  EXPECT_EQ(paired.status, 0) << paired.err;
  const auto refused = run({"eval", trained(), "text.txt", "--against", "budgets", "--prefill", "spectral"});
  expect_sentence(refused, 2, {"found the selector spectral"});
  EXPECT_EQ(refused.out, "") << "nothing is scored before both models are checked";
  expect_sentence(run({"generate", "budgets", "The", "--prefill-chunk", "4"}), 2, {"expected prompts in one piece"});
}

TEST(GenerateInput, ThatIsWrongGetsASentence) {
  std::string longer;
  for (int i = 0; i < 100; ++i) longer += "The river sings. ";
  expect_sentence(run({"generate", trained(), longer}), 2, {"32"});
  expect_sentence(run({"generate", trained(), "The", "--max-new-tokens", "1000"}), 2, {"32", "1000"});
  expect_sentence(run({"generate", trained(), "The", "--max-new-tokens", "-1"}), 2,
                  {"--max-new-tokens: expected at least 1"});
  expect_sentence(run({"generate", trained(), "The", "--prefill", "spectral", "--prefill-set", "q=1"}), 2,
                  {"--prefill-set: expected", "\"q\""});
  expect_sentence(run({"generate", trained(), "The", "--dtype", "int8"}), 2, {"--dtype: expected"});
  expect_sentence(run({"generate", "nowhere", "The"}), 2, {"nowhere"});
  expect_sentence(run({"generate", trained(), "The", "--temperature", "-1"}), 2, {"temperature"});
  expect_sentence(run({"generate", trained(), "The", "--top-p", "2"}), 2, {"top"});
  expect_sentence(run({"generate", trained(), "The", "--threads", "-1"}), 2, {"--threads"});
  expect_sentence(run({"generate", trained(), "--prompt-file", "/dev/zero"}), 2, {"/dev/zero", "device"});
  expect_sentence(run({"generate", trained(), "\xff\xfe"}), 2, {"UTF-8"});
  expect_sentence(run({"generate", "", "The"}), 2, {"MODEL", "found nothing"});
  EXPECT_EQ(run({"generate", trained(), longer, "--truncate-prompt", "--slide", "--max-new-tokens", "40"}).status, 0);
}

TEST(GenerateTokenizer, OfAnotherModelIsRefused) {
  const auto& shop = Workshop::folder();
  ASSERT_EQ(run({"tokenizer", "train", "text.txt", "--vocab-size", "320", "--out", "larger"}).status, 0);
  trained();
  fs::remove_all(shop / "mixed");
  fs::copy(last_checkpoint(), shop / "mixed");
  fs::copy_file(shop / "larger/tokenizer.json", shop / "mixed/tokenizer.json", fs::copy_options::overwrite_existing);
  expect_sentence(run({"generate", "mixed", "The"}), 2, {"300", "another model"});
  write_text(shop / "other.txt",
             "zebras quiz foxes, zebras jump; foxes quiz zebras, foxes jump. " + read_text(shop / "text.txt"));
  const auto with_equal_size = [&](std::vector<std::string> words) {
    words.insert(words.begin(),
                 {"tokenizer", "train", "other.txt", "--vocab-size", "300", "--out", "equal", "--force"});
    EXPECT_EQ(run(words).status, 0);
    fs::copy_file(shop / "equal/tokenizer.json", shop / "mixed/tokenizer.json", fs::copy_options::overwrite_existing);
    return run({"generate", "mixed", "The"});
  };
  expect_sentence(with_equal_size({}), 2, {"tokenizer of this model", "another model"});
  expect_sentence(with_equal_size({"--special", "<|x|>"}), 2, {"tokenizer_config.json", "of the same tokenizer"});
}

/// Commands that finish quickly. MODEL stands for a run.
const std::vector<std::string> kBriefCommands[] = {
    {"generate", "MODEL", "The river", "--threads", "1", "--seed", "5"},
    {"eval", "MODEL", "text.txt", "--threads", "1", "--json"},
    {"analyse", "entropy", "MODEL", "text.txt", "--threads", "1"},
    {"info", "recipe.json"},
    {"report", "MODEL", "--out", "quiet.html"},
    {"tokenizer", "encode", "--tokenizer", "tokenizer", "text.txt"},
    {"tokenizer", "train", "text.txt", "--vocab-size", "290", "--out", "quiet_tokenizer", "--force"},
    {"bench", "attention", "--tokens", "16", "--head-dims", "16", "--threads", "1", "--json"},
};

TEST(Quiet, LeavesResultsAndFailuresAlone) {
  for (auto words : kBriefCommands) {
    for (auto& word : words) word = word == "MODEL" ? trained() : word;
    const auto told = run(words);
    words.emplace_back("--quiet");
    const auto quiet = run(words);
    EXPECT_EQ(quiet.status, 0) << words[0] << ": " << quiet.err;
    EXPECT_EQ(quiet.err, "") << words[0];
    if (words[0] != "bench" && words[0] != "eval") {
      EXPECT_EQ(quiet.out, told.out) << words[0];
    }
  }
  EXPECT_NE(run({"generate", trained(), "The river"}).err, "") << "without --quiet, speeds are printed";
  const std::vector<std::string> train = {"train", "--recipe",       "recipe.json", "--threads",
                                          "1",     "--train.tokens", "1024",        "--out"};
  auto words = train;
  words.insert(words.end(), {"quiet_run", "--quiet"});
  EXPECT_EQ(run(words).err, "");
  expect_sentence(run({"generate", "nowhere", "The", "--quiet"}), 2, {"nowhere"});
}

TEST(Messages, ShowNoControlCharactersAndCutLongValues) {
  const auto outcome = run({"generate", "\x1b[2Jno\rwhere", "The"});
  expect_sentence(outcome, 2, {"\uFFFD[2Jno"});
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
  const auto lines = run({"generate", "no\n[train] where", "The"});
  expect_sentence(lines, 2, {"no [train] where"});
  EXPECT_EQ(std::count(lines.err.begin(), lines.err.end(), '\n'), 1) << "a name cannot start a new line: " << lines.err;
  const auto cut = run({"generate", trained(), "The", "--prefill", std::string(50000, 'x')});
  EXPECT_EQ(cut.status, 2);
  EXPECT_LT(cut.err.size(), 1200u) << cut.err.substr(0, 100);
}

TEST(TokenizeInput, ThatIsWrongGetsASentence) {
  write_text(Workshop::folder() / "empty.txt", "");
  write_text(Workshop::folder() / "binary.txt", "abc \xff\xfe def");
  write_text(Workshop::folder() / "plain", "x");
  const auto tokenize = [](const std::string& file, const std::string& out) {
    return run({"tokenize", file, "--tokenizer", "tokenizer", "--out", out});
  };
  expect_sentence(tokenize("empty.txt", "t1"), 2, {"empty"});
  expect_sentence(tokenize("binary.txt", "t1"), 2, {"UTF-8", "binary.txt"});
  expect_sentence(tokenize("text.txt", "data"), 2, {"data", "--force"});
  expect_sentence(tokenize("text.txt", "plain/data"), 2, {"plain", "found a file"});
  expect_sentence(run({"tokenize", "text.txt", "--tokenizer", "nowhere", "--out", "t1"}), 2, {"nowhere"});
  EXPECT_FALSE(fs::exists(Workshop::folder() / "t1/data.json"));
}

TEST(Report, WritesOnePageAndATable) {
  const auto outcome = run({"report", trained(), "--out", "page.html", "--markdown", "page.md"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(read_text(Workshop::folder() / "page.html").find("<svg"), std::string::npos);
  EXPECT_NE(read_text(Workshop::folder() / "page.md").find("1x1,2x1"), std::string::npos);
}

TEST(Report, WritesFiguresThatItsMarkdownShows) {
  const auto outcome =
      run({"report", trained(), "--out", "page.html", "--markdown", "texts/page.md", "--figures", "pictures/page"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(read_text(Workshop::folder() / "pictures/page/valid.svg").find("<svg"), std::string::npos);
  EXPECT_NE(read_text(Workshop::folder() / "texts/page.md").find("(<../pictures/page/valid.svg>)"), std::string::npos);
}

TEST(Report, WritesNothingWhereOneFileCannotBeWritten) {
  expect_sentence(run({"report", trained(), "--out", "never.html", "--markdown", "text.txt/page.md"}), 2, {"text.txt"});
  expect_sentence(run({"report", trained(), "--out", "never.html", "--figures", "text.txt"}), 2, {"text.txt"});
  EXPECT_FALSE(fs::exists(Workshop::folder() / "never.html"));
}

TEST(ReportInput, ThatIsWrongGetsASentence) {
  trained();
  expect_sentence(run({"report", "data"}), 2, {"records.jsonl"});
  expect_sentence(run({"report", trained(), "--baseline", "none"}), 2, {"none"});
  expect_sentence(run({"report", trained(), "--out", "data"}), 2, {"data"});
  expect_sentence(run({"report", trained(), "--out", "/dev/null"}), 2, {"/dev/null"});
  expect_sentence(run({"report", trained(), "--out", "trained/records.jsonl"}), 2, {"records.jsonl"});
}

TEST(EmptyValues, AreRefusedByTheNameOfTheirOption) {
  // They come from unset shell variables.
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"--vocab-size", {"info", "recipe.json", "--vocab-size", ""}},
      {"--threads", {"eval", "model", "text.txt", "--threads", ""}},
      {"--tokens", {"analyse", "spectrum", "model", "text.txt", "--tokens", ""}},
      {"--baseline", {"report", "run", "--baseline", ""}},
      {"--title", {"report", "run", "--title", ""}},
      {"--out", {"tokenize", "text.txt", "--tokenizer", "tokenizer", "--out", ""}},
      {"--out", {"tokenizer", "train", "text.txt", "--out", ""}},
      {"--layers", {"analyse", "maps", "model", "text.txt", "--layers", ""}},
      {"--set", {"sweep", "sweep.json", "--set", ""}},
      {"--stop", {"generate", "model", "The", "--stop", ""}},
      {"--max-new-tokens", {"generate", "model", "The", "--max-new-tokens", ""}},
      {"TEXT", {"tokenizer", "encode", "--tokenizer", "tokenizer", ""}},
  };
  for (const auto& [option, words] : cases) {
    SCOPED_TRACE(option);
    expect_sentence(run(words), 2, {option, "found nothing"});
  }
}

}  // namespace
}  // namespace prism
