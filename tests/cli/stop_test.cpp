// After Ctrl-C or SIGTERM, long work ends soon, with one sentence, and leaves nothing unfinished.
#include <gtest/gtest.h>

#include "tests/cli/commands.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// A pipe that nobody writes to, for the standard input of a child.
class SilentInput {
 public:
  SilentInput() {
    if (::pipe(ends_) != 0) throw std::runtime_error("no pipe");
  }
  ~SilentInput() {
    for (const int end : ends_) ::close(end);
  }
  SilentInput(const SilentInput&) = delete;
  SilentInput& operator=(const SilentInput&) = delete;

  /// Makes it standard input. Call it in the child.
  void take() const {
    ::dup2(ends_[0], STDIN_FILENO);
    ::close(ends_[1]);
  }

 private:
  int ends_[2];
};

TEST(TokenizeCommand, StopsAtASignalWhateverTheSizeOfItsShards) {
  const auto& shop = Workshop::folder();
  const TemporaryFolder own;
  const pid_t child = start_prism({"tokenize", (shop / "text.txt").string(), "--tokenizer",
                                   (shop / "tokenizer").string(), "--shard-tokens", "1", "--out", "out"},
                                  own.path());
  ASSERT_TRUE(wait_for_file(own.path() / "out/.partial/train_000001.bin"));
  ::kill(child, SIGTERM);
  expect_sentence(wait_for(child, own.path()), 1, {"stopped by a signal"});
  EXPECT_FALSE(fs::exists(own.path() / "out"));
}

TEST(TokenizerTrain, ThatIsStoppedLeavesNoFolder) {
  const TemporaryFolder own;
  const SilentInput input;
  const pid_t child = start_prism({"tokenizer", "train", "-", "--vocab-size", "300", "--out", "new/tokenizer"},
                                  own.path(), [&] { input.take(); });
  ASSERT_TRUE(wait_for_file(own.path() / "new/tokenizer"));
  ::kill(child, SIGINT);
  expect_sentence(wait_for(child, own.path()), 1, {"stopped while waiting"});
  EXPECT_FALSE(fs::exists(own.path() / "new"));
}

TEST(Eval, OfASilentPipeStopsAtASignal) {
  const TemporaryFolder own;
  const SilentInput input;
  const pid_t child = start_prism({"eval", (Workshop::folder() / trained()).string(), "-", "--threads", "1"},
                                  own.path(), [&] { input.take(); });
  ASSERT_TRUE(wait_until_caught(child, SIGTERM));
  ::kill(child, SIGTERM);
  expect_sentence(wait_for(child, own.path()), 1, {"stopped"});
}

}  // namespace
}  // namespace prism
