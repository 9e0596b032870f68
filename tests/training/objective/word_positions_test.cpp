// Training a model whose features turn with the position in the word.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "prism/checkpoint/model_folder.h"
#include "tests/core/message_of.h"
#include "tests/generation/tiny_model.h"
#include "tests/training/tiny_run.h"

namespace prism {
namespace {

class WordPositionRun : public TinyRun {
 protected:
  Recipe turning() const {
    auto r = recipe();
    r.model.vocab_size = kTinyVocab;
    for (auto& layer : r.model.layers) layer.rotary.word_dims = 4;
    return r;
  }
  /// Ids are bytes, of which 9 to 13 and 32, among others, start a word.
  void save_tokenizer() const { tiny_tokenizer().save(folder_.path() / "data/tokenizer.json"); }
};

TEST_F(WordPositionRun, NeedsTheTokenizerOfItsData) {
  EXPECT_REFUSED(train(turning(), "run"), "expected a tokenizer in");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "run"));
}

TEST_F(WordPositionRun, ResumesBitForBitAndLoadsAsItWasSaved) {
  save_tokenizer();
  expect_resumes(turning(), {"loss", "grad_norm"});

  const auto model = load_model(folder_.path() / "whole", torch::kFloat);
  EXPECT_EQ(model.decoder->config().layers[1].rotary.word_dims, 4);
  EXPECT_EQ(model.decoder->word_starts(), decoder_->word_starts());
  const torch::NoGradGuard no_gradients;
  const auto tokens = torch::arange(kContext).unsqueeze(0);
  EXPECT_TRUE(torch::equal(model.decoder(tokens, {}), decoder_(tokens, {})));
  std::filesystem::remove(model.folder / "tokenizer.json");
  const auto without = load_model(folder_.path() / "whole", torch::kFloat);
  EXPECT_REFUSED(without.decoder(tokens, {}), "add tokenizer.json to the model's folder");
}

}  // namespace
}  // namespace prism
