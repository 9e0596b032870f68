#include "prism/data/tokenize.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/core/stop.h"
#include "tests/core/child_process.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/data/byte_tokenizer.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

std::string made_text(size_t bytes, uint64_t seed) {
  Random random(seed);
  std::string text;
  while (text.size() < bytes) {
    for (uint64_t letters = 1 + random.below(9); letters > 0; --letters)
      text += static_cast<char>('a' + random.below(26));
    text += random.below(9) == 0 ? '\n' : ' ';
  }
  text.resize(bytes);
  return text;
}

class Tokenize : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_.path() / name).parent_path());
    fs::remove(folder_.path() / name);  // overwriting a file waits for the disk on ext4
    std::ofstream(folder_.path() / name, std::ios::binary) << bytes;
    return (folder_.path() / name).string();
  }

  fs::path out() const { return folder_.path() / "out"; }

  TokenizeSummary run(const std::vector<std::string>& inputs, const TokenizeOptions& options = {},
                      const std::vector<std::string>& valid = {}) {
    return tokenize(inputs, valid, tokenizer_, out(), options);
  }

  /// JSONL rows "document <i> ..." of different lengths.
  std::string rows(int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text +=
          Json({{"text", fmt::format("document {} {}", i, made_text(static_cast<size_t>(i * 37 % 500), 7))}}).dump() +
          "\n";
    return put("rows.jsonl", text);
  }

  /// The texts of a split's documents, decoded from its tokens.
  std::vector<std::string> documents(const std::string& split) const {
    const TokenDataset data(out(), split);
    std::vector<int64_t> tokens(static_cast<size_t>(data.size()));
    data.read(0, tokens);
    std::vector<std::string> texts;
    for (const int64_t token : tokens) {
      if (token == kEnd) {
        texts.emplace_back();
      } else {
        texts.back() += static_cast<char>(bytes_in_alphabet_order()[static_cast<size_t>(token)]);
      }
    }
    return texts;
  }

  /// Name -> bytes of every file but the lock.
  std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::directory_iterator(out())) {
      const std::string name = entry.path().filename();
      if (name != ".lock") files[name] = entry.is_directory() ? "folder" : read_file(entry.path());
    }
    return files;
  }

  const Tokenizer tokenizer_ = byte_tokenizer();
  TemporaryFolder folder_;
};

TokenizeOptions share(double valid_share, int64_t seed = 1) {
  TokenizeOptions options;
  options.valid_share = valid_share;
  options.seed = seed;
  return options;
}

TEST_F(Tokenize, WritesEveryDocumentAfterTheOpeningToken) {
  TokenizeOptions options = share(0);
  options.text.separator = R"(\n\n\n\n)";
  const TokenizeSummary summary =
      run({put("a.txt", "one\n\n\n\ntwo <|endoftext|>"), put("b.txt", "\xC3\xA9")}, options);
  // A special token spelled in a text stays text, so it cannot forge a document boundary.
  EXPECT_EQ(documents("train"), (std::vector<std::string>{"one", "two <|endoftext|>", "\xC3\xA9"}));
  EXPECT_EQ(summary.info.train_documents, 3);
  EXPECT_EQ(summary.info.train_bytes, 3 + 17 + 2);
  EXPECT_EQ(summary.info.train_tokens, summary.info.train_bytes + 3);
  EXPECT_EQ(summary.info.valid_documents, 0);
  EXPECT_EQ(summary.info.end_of_text, kEnd);
  EXPECT_EQ(summary.train_shards, 1);
  EXPECT_EQ(summary.valid_shards, 0);
  const TokenDataset data(out(), "train");
  ASSERT_TRUE(data.info());
  EXPECT_TRUE(equal_fields(*data.info(), summary.info));
  EXPECT_EQ(data.info()->tokenizer_fingerprint, fmt::format("{:016x}", Tokenizer::load(out()).fingerprint()));
}

TEST_F(Tokenize, SplitsTokensOverShards) {
  TokenizeOptions options = share(0);
  options.shard_tokens = 100;
  const std::string text = made_text(349, 1);
  EXPECT_EQ(run({put("a.txt", text)}, options).train_shards, 4);
  EXPECT_EQ(TokenShard(out() / "train_000000.bin").size(), 100);
  EXPECT_EQ(TokenShard(out() / "train_000003.bin").size(), 50);
  EXPECT_EQ(documents("train"), std::vector<std::string>{text});
}

TEST_F(Tokenize, WritesTheSameFilesWhateverTheThreads) {
  const std::string input = rows(400), novel = put("novel.txt", made_text(3'000'000, 4));
  TokenizeOptions options = share(0.1);
  options.force = true;
  options.shard_tokens = 1'000'000;
  options.text.piece_bytes = 1 << 16;
  std::map<std::string, std::string> first;
  for (const int threads : {1, 2, 5}) {
    options.threads = threads;
    run({input, novel}, options);
    if (threads == 1) first = contents();
    EXPECT_EQ(contents(), first) << threads;
  }
  EXPECT_GT(first.size(), 5u);
}

TEST_F(Tokenize, KeepsALongDocumentWholeThoughItIsEncodedInPieces) {
  TokenizeOptions options = share(0);
  options.text.piece_bytes = 1000;
  const std::string text = made_text(1'000'000, 5);
  run({put("a.txt", text), put("row.jsonl", Json({{"text", text}}).dump())}, options);
  EXPECT_EQ(documents("train"), (std::vector<std::string>{text, text}));
}

TEST_F(Tokenize, ChoosesValidationDocumentsBySeed) {
  const std::string input = rows(1000);
  TokenizeOptions options = share(0.2);
  options.force = true;
  run({input}, options);
  const auto first_train = documents("train"), first_valid = documents("valid");
  EXPECT_EQ(first_train.size() + first_valid.size(), 1000u);
  // Binomial: 200 expected, standard deviation 12.6.
  EXPECT_GT(first_valid.size(), 140u);
  EXPECT_LT(first_valid.size(), 260u);
  EXPECT_TRUE(first_valid[0].starts_with("document 1 "));
  options.seed = 2;
  run({input}, options);
  EXPECT_NE(documents("valid"), first_valid);
  options.seed = 1;
  run({input}, options);
  EXPECT_EQ(documents("valid"), first_valid);
}

TEST_F(Tokenize, HasAValidationDocumentAsSoonAsThereAreTwo) {
  TokenizeOptions options = share(1e-9);
  options.force = true;
  for (const int count : {1, 2, 3}) {
    const TokenizeSummary summary = run({rows(count)}, options);
    EXPECT_EQ(summary.info.valid_documents, count == 1 ? 0 : 1);
    EXPECT_EQ(summary.info.train_documents, count == 1 ? 1 : count - 1);
  }
}

TEST_F(Tokenize, TakesNamedFilesForValidationAndNotForTraining) {
  const std::string train = put("d/train.txt", "train"), valid = put("d/valid.txt", "valid");
  const TokenizeSummary summary = run({(folder_.path() / "d").string()}, share(0.5), {valid});
  EXPECT_EQ(documents("train"), std::vector<std::string>{"train"});
  EXPECT_EQ(documents("valid"), std::vector<std::string>{"valid"});
  EXPECT_EQ(summary.info.valid_bytes, 5);
  EXPECT_CONTAINS(message_of([&] { tokenize({valid}, {valid}, tokenizer_, folder_.path() / "other", {}); }),
                  "text to train on");
  EXPECT_CONTAINS(message_of([&] { tokenize({train}, {put("e.txt", "")}, tokenizer_, folder_.path() / "other", {}); }),
                  "text in the --valid files");
}

TEST_F(Tokenize, NeedsNoOpeningToken) {
  const TokenizeSummary summary =
      tokenize({put("a.txt", "ab"), put("b.txt", "c")}, {}, byte_tokenizer(false), out(), share(0));
  EXPECT_EQ(summary.info.end_of_text, -1);
  EXPECT_EQ(summary.info.train_tokens, 3);
  EXPECT_EQ(summary.info.vocab_size, 256);
}

TEST_F(Tokenize, RefusesTextWithoutContentAndLeavesNoFolder) {
  const std::string empty = put("empty.txt", "");
  EXPECT_CONTAINS(message_of([&] { run({empty}); }), "only empty documents (1)");
  EXPECT_CONTAINS(message_of([&] {
                    run({empty, put("rows.jsonl", "{\"text\": \"\"}\n{\"text\": \"\"}\n")});
                  }),
                  "only empty documents (3)");
  EXPECT_CONTAINS(message_of([&] { run({put("bad.txt", "ok \xFF")}); }), "byte offset 3");
  EXPECT_CONTAINS(message_of([&] { run({}); }), "at least one file");
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Tokenize, RefusesOptionsOutOfRange) {
  const std::string input = put("a.txt", "text");
  EXPECT_CONTAINS(message_of([&] { run({input}, share(1)); }), "validation share");
  EXPECT_CONTAINS(message_of([&] { run({input}, share(-0.1)); }), "validation share");
  TokenizeOptions options;
  options.shard_tokens = int64_t{1} << 31;
  EXPECT_CONTAINS(message_of([&] { run({input}, options); }), "2147483647 tokens a shard");
  options.shard_tokens = 0;
  EXPECT_NE(message_of([&] { run({input}, options); }), "");
  options = {};
  options.threads = -1;
  EXPECT_CONTAINS(message_of([&] { run({input}, options); }), "threads");
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Tokenize, RefusesAFolderThatHoldsADatasetAndKeepsItWhenItFails) {
  const std::string a = put("a.txt", "old text"), bad = put("bad.txt", "new \xFF"), b = put("b.txt", "new");
  run({a}, share(0));
  const auto before = contents();
  EXPECT_CONTAINS(message_of([&] { run({b}); }), "--force");
  EXPECT_EQ(contents(), before);
  TokenizeOptions options = share(0);
  options.force = true;
  EXPECT_CONTAINS(message_of([&] { run({bad}, options); }), "UTF-8");
  EXPECT_EQ(contents(), before);
  run({b}, options);
  EXPECT_EQ(documents("train"), std::vector<std::string>{"new"});
}

TEST_F(Tokenize, ReplacesAllOfAnOldDatasetAndNothingElse) {
  TokenizeOptions options = share(0.5);
  options.shard_tokens = 1000;
  options.force = true;
  run({rows(20)}, options);
  put("out/README.md", "mine");
  run({put("a.txt", "short")}, options);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : contents()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"README.md", "data.json", "tokenizer.json", "train_000000.bin"}));
}

TEST_F(Tokenize, LeavesMarksAndSettingsOfOthersAlone) {
  const std::map<std::string, std::string> mine = {{"exam.marks", "marks"},
                                                   {"train.marks", "marks"},
                                                   {"tokenizer_config.json", "{}"},
                                                   {"chat_template.jinja", "{{ messages }}"}};
  for (const auto& [name, bytes] : mine) put("out/" + name, bytes);
  tokenizer_.save(out() / "tokenizer.json");  // a model folder: no data.json
  run({put("a.txt", "text")}, share(0));
  EXPECT_EQ(documents("train"), std::vector<std::string>{"text"});
  const auto files = contents();
  for (const auto& [name, bytes] : mine) EXPECT_EQ(files.count(name) == 1 ? files.at(name) : "none", bytes) << name;
}

TEST_F(Tokenize, RemovesTheMarksAndSettingsOfTheOldDataset) {
  TokenizeOptions options = share(0);
  options.force = true;
  Tokenizer chats = byte_tokenizer();
  chats.set_chat_template("{{ messages }}");
  const std::string text = put("a.txt", "text");
  tokenize({text}, {}, chats, out(), options);
  EXPECT_EQ(contents().count("chat_template.jinja"), 1u);
  EXPECT_EQ(contents().count("tokenizer_config.json"), 1u);
  put("out/train_000007.marks", "left over");
  put("out/valid_000000.marks", "left over");
  run({text}, options);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : contents()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"data.json", "tokenizer.json", "train_000000.bin"}));
}

TEST_F(Tokenize, RemovesTheSettingsOfADatasetWhoseWritingWasCutOff) {
  put("out/.unfinished/train_000000.bin", "the rest");
  put("out/data.json", "{}");  // moved first
  put("out/tokenizer_config.json", "{}");
  TokenizeOptions options = share(0);
  options.force = true;
  run({put("a.txt", "text")}, options);
  EXPECT_EQ(contents().count("tokenizer_config.json"), 0u);
  EXPECT_EQ(documents("train"), std::vector<std::string>{"text"});
}

TEST_F(Tokenize, DoesNotOverwriteAnotherTokenizer) {
  fs::create_directory(out());
  byte_tokenizer(false).save(out() / "tokenizer.json");
  const auto before = contents();
  const std::string input = put("a.txt", "text");
  EXPECT_CONTAINS(message_of([&] { run({input}, share(0)); }), "no other tokenizer");
  EXPECT_EQ(contents(), before);
  tokenizer_.save(out() / "tokenizer.json");
  run({input}, share(0));
  EXPECT_EQ(documents("train").size(), 1u);
}

TEST_F(Tokenize, RefusesAFolderInWhichAnotherProcessWorks) {
  fs::create_directory(out());
  const FolderLock lock(out(), "test");
  EXPECT_THROW(run({put("a.txt", "text")}), FailedError);
}

TEST_F(Tokenize, RefusesAFileForAFolderWithoutATrace) {
  const std::string file = put("file", "no folder");
  EXPECT_THROW(tokenize({put("a.txt", "text")}, {}, tokenizer_, file, {}), InputError);
  EXPECT_EQ(read_file(file), "no folder");
}

TEST_F(Tokenize, FailsCleanlyWhenTheDiskIsFull) {
  const std::string input = put("a.txt", made_text(100'000, 1));
  // A limit on file sizes stands in for a full disk.
  ChildProcess child([&](const std::function<void()>&) {
    std::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit = {50'000, 50'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      run({input}, share(0));
    } catch (const FailedError&) {
      ::_exit(42);
    }
  });
  EXPECT_EQ(child.wait(), 42);
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Tokenize, LeavesTheFolderCleanWhenInterrupted) {
  const std::string a = put("a.txt", "old"), novel = put("novel.txt", made_text(2'000'000, 1));
  run({a}, share(0));
  const auto before = contents();
  ChildProcess child([&](const std::function<void()>& ready) {
    catch_stop_signals();
    TokenizeOptions options = share(0);
    options.force = true;
    options.text.piece_bytes = 1000;
    bool first = true;
    try {
      // Reads the same file over and over until the signal arrives.
      tokenize(std::vector<std::string>(2'000, novel), {}, tokenizer_, out(), options, [&](const TokenizeProgress&) {
        if (std::exchange(first, false)) ready();
      });
    } catch (const FailedError&) {
      ::_exit(42);
    }
  });
  ASSERT_TRUE(child.wait_until_ready());
  ::kill(child.id(), SIGINT);
  EXPECT_EQ(child.wait(), 42);
  EXPECT_EQ(contents(), before);
}

TEST_F(Tokenize, LeavesTheOldDatasetOrTheNewOneOrNoneThatIsAcceptedWhenKilled) {
  const std::string a = put("a.txt", made_text(30'000, 1)), b = put("b.txt", made_text(40'000, 2));
  TokenizeOptions options = share(0);
  options.force = true;
  options.shard_tokens = 3000;
  const std::string text_a = read_file(a), text_b = read_file(b);
  const auto began = std::chrono::steady_clock::now();
  run({a}, options);
  const auto once = std::chrono::steady_clock::now() - began;
  Random random(std::chrono::steady_clock::now().time_since_epoch().count());
  int accepted = 0;
  for (int round = 0; round < 20; ++round) {
    ChildProcess child([&](const std::function<void()>& ready) {
      ready();
      for (;;) {
        run({b}, options);
        run({a}, options);
      }
    });
    ASSERT_TRUE(child.wait_until_ready());
    std::this_thread::sleep_for(once * 2 * random.uniform());
    child.kill();
    try {
      const auto found = documents("train");
      ASSERT_EQ(found.size(), 1u);
      EXPECT_TRUE(found[0] == text_a || found[0] == text_b);
      ++accepted;
    } catch (const InputError& error) {
      EXPECT_CONTAINS(error.what(), "interrupted");
    }
  }
  EXPECT_GT(accepted, 0);
  run({a}, options);
  EXPECT_EQ(documents("train"), std::vector<std::string>{text_a});
  EXPECT_FALSE(fs::exists(out() / ".partial"));
}

TEST_F(Tokenize, RefusesToTrainOnNothingButValidationFiles) {
  const std::string file = put("a.txt", "text");
  EXPECT_REFUSED(tokenize({file}, {file}, tokenizer_, out(), {}), "only files that --valid names too");
}

TEST_F(Tokenize, AcceptsAFolderInWhichAFirstRunWasKilled) {
  fs::create_directories(out() / ".partial");
  put("out/.partial/train_000000.bin.123.tmp", "left");
  EXPECT_CONTAINS(message_of([&] { documents("train"); }), "found none");
  run({put("a.txt", "text")}, share(0));
  EXPECT_EQ(documents("train"), std::vector<std::string>{"text"});
  EXPECT_EQ(contents().size(), 3u);
}

}  // namespace
}  // namespace prism
