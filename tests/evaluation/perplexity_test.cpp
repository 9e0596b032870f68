// Perplexity against a loop over single tokens, its identities, and refused inputs.
#include "prism/evaluation/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prism/attention/prefill.h"
#include "prism/attention/prefill_meter.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/evaluation/windows.h"
#include "tests/core/temporary_folder.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

const std::string kFirst = "It was the best of times,\nit was  the worst of times \xE2\x80\x94 and\xC2\xA0so on.";
const std::string kSecond = "x";
const std::string kThird = "Another document, the third; rather longer than the other two: 0123456789 0123456789.";

/// A folder with the three documents as rows of a .jsonl.
class Documents {
 public:
  Documents() {
    std::string rows;
    for (const auto& text : {kFirst, kSecond, kThird}) rows += Json{{"text", text}}.dump() + "\n";
    write_file(folder_.path() / "three.jsonl", rows);
  }
  /// The documents as a source. @param piece_bytes  maximum size of a piece of text.
  TextSource source(int64_t piece_bytes = 1 << 20) const {
    TextOptions options;
    options.piece_bytes = piece_bytes;
    return TextSource({(folder_.path() / "three.jsonl").string()}, options);
  }
  /// A source of a .txt file with this content.
  TextSource text(const std::string& content) const {
    write_file(folder_.path() / "text.txt", content);
    return TextSource({(folder_.path() / "text.txt").string()});
  }

 private:
  TemporaryFolder folder_;
};

/// Nats of one document, token by token. Each token has its own pass over exactly the context that the convention
/// gives it, and a log-softmax in float64.
double plain_nats(Decoder decoder, const std::vector<int32_t>& ids, int64_t window, int64_t stride) {
  const torch::NoGradGuard no_gradients;
  double nats = 0;
  for (int64_t target = 1; target < static_cast<int64_t>(ids.size()); ++target) {
    // The first window that reaches the token before the target.
    int64_t begin = 0;
    while (begin + window < target) begin += stride;
    const std::vector<int64_t> read(ids.begin() + begin, ids.begin() + target);
    ForwardContext context;
    context.word_opening_B =
        torch::full({1}, decoder->word_opening({ids.data(), static_cast<size_t>(begin)}), torch::kLong);
    const auto hidden = decoder(torch::tensor(read).unsqueeze(0), context);
    const auto logits = decoder->head.logits(hidden).select(1, hidden.size(1) - 1).flatten().to(torch::kDouble);
    nats -= logits.log_softmax(0)[ids[static_cast<size_t>(target)]].item<double>();
  }
  return nats;
}

std::vector<int32_t> opened(const Tokenizer& tokenizer, const std::string& text) {
  std::vector<int32_t> ids;
  if (tokenizer.special_ids().opening) ids.push_back(*tokenizer.special_ids().opening);
  for (const int32_t id : tokenizer.encode(text, SpecialTokens::as_text)) ids.push_back(id);
  return ids;
}

/// Compares the result with the loop. Zeros in `options` stand for the context, 32, and the window.
void expect_equal_to_the_loop(bool end_of_text, const TextWindowOptions& options,
                              Decoder decoder = tiny_decoder(/*context=*/32)) {
  const Documents documents;
  const auto tokenizer = tiny_tokenizer(end_of_text);
  const int64_t window = options.window == 0 ? 32 : options.window;
  const int64_t stride = options.stride == 0 ? window : options.stride;
  double nats = 0;
  int64_t tokens = 0;
  for (const auto& text : {kFirst, kSecond, kThird}) {
    const auto ids = opened(tokenizer, text);
    nats += plain_nats(decoder, ids, window, stride);
    tokens += static_cast<int64_t>(ids.size()) - 1;
  }
  auto source = documents.source();
  const auto result = evaluate_perplexity(decoder, tokenizer, source, options);
  EXPECT_EQ(result.tokens, tokens);
  EXPECT_EQ(result.window, window);
  EXPECT_EQ(result.stride, stride);
  // Each loss is within a few float32 roundings of logits below 20. A token too many, too few or with another context
  // changes the sum by 0.1% or more.
  EXPECT_NEAR(result.nats, nats, 1e-5 * nats) << window << " " << stride;
}

TEST(Perplexity, EqualsALoopOverSingleTokensForEveryWindowAndStride) {
  for (const auto& options : {TextWindowOptions{0, 0}, {32, 8}, {7, 3}, {16, 1}, {1, 1}})
    expect_equal_to_the_loop(true, options);
}

TEST(Perplexity, EqualsALoopOverSingleTokensWithoutAnEndOfText) {
  expect_equal_to_the_loop(false, {0, 0});
  expect_equal_to_the_loop(false, {7, 3});
}

TEST(Perplexity, KnowsTheWordThatAWindowOpensIn) {
  auto config = tiny_decoder(32)->config();
  for (auto& layer : config.layers) layer.rotary.word_dims = 4;
  auto decoder = make_decoder(config);
  for (const bool end_of_text : {true, false}) {
    decoder->set_word_starts(tiny_tokenizer(end_of_text).word_starts());
    expect_equal_to_the_loop(end_of_text, {7, 3}, decoder);
  }
}

TEST(Perplexity, LetsHeadBudgetsReadWhatComesBeforeTheFirstPrediction) {
  auto decoder = tiny_budget_decoder("learned", 32);
  const torch::NoGradGuard no_gradients;
  const auto ids = opened(tiny_tokenizer(), kThird);
  double nats = 0;
  for (const auto& window : cut_windows(0, static_cast<int64_t>(ids.size()), 16, 4)) {
    const std::vector<int64_t> read(ids.begin() + window.begin, ids.begin() + window.begin + window.length);
    ForwardContext context;
    context.prompts_B = torch::tensor({static_cast<int32_t>(window.counted_from + 1)}, torch::kInt);
    const auto logits = decoder->head.logits(decoder(torch::tensor(read).unsqueeze(0), context))[0].to(torch::kDouble);
    for (int64_t t = window.counted_from; t < window.length; ++t)
      nats -= logits[t].log_softmax(0)[ids[static_cast<size_t>(window.begin + t + 1)]].item<double>();
  }
  const Documents documents;
  auto source = documents.text(kThird);
  EXPECT_NEAR(evaluate_perplexity(decoder, tiny_tokenizer(), source, {16, 4}).nats, nats, 1e-5 * nats);
  Prefill dense{PrefillOptions()};  // as prism eval calls it
  auto again = documents.text(kThird);
  const auto result = evaluate_perplexity(decoder, tiny_tokenizer(), again, {16, 0}, &dense);
  EXPECT_EQ(result.stride, 8) << "half of the window, so that budgets have something to read";
  EXPECT_CONTAINS(result.conventions().back(), "head budgets read");
}

TEST(Perplexity, ChangesWithTheStride) {
  const Documents documents;
  const auto nats = [&](int64_t stride) {
    auto source = documents.source();
    return evaluate_perplexity(tiny_decoder(32), tiny_tokenizer(), source, {16, stride}).nats;
  };
  EXPECT_GT(std::abs(nats(16) / nats(4) - 1), 1e-3);
}

TEST(Perplexity, IsTheSameHoweverManyBatchesAndPiecesThereAre) {
  // Windows are scored up to 8,192 tokens at a time.
  std::string text;
  for (int i = 0; i < 1200; ++i) text += "the word ";
  const Documents documents;
  auto decoder = tiny_decoder(32);
  const auto tokenizer = tiny_tokenizer();
  auto source = documents.text(text);
  const auto result = evaluate_perplexity(decoder, tokenizer, source, {32, 32});
  EXPECT_EQ(result.tokens, std::ssize(tokenizer.encode(text)));
  EXPECT_EQ(result.words, 2400);

  // Computes each window separately; the last is shorter.
  const torch::NoGradGuard no_gradients;
  const auto ids = opened(tokenizer, text);
  double nats = 0;
  for (size_t begin = 0; begin + 1 < ids.size(); begin += 32) {
    const auto end = std::min(begin + 32, ids.size() - 1);
    const std::vector<int64_t> read(ids.begin() + begin, ids.begin() + end);
    const std::vector<int64_t> next(ids.begin() + begin + 1, ids.begin() + end + 1);
    const auto hidden = decoder(torch::tensor(read).unsqueeze(0), ForwardContext{});
    nats += decoder->head.token_losses(hidden, torch::tensor(next).unsqueeze(0)).sum(torch::kDouble).item<double>();
  }
  EXPECT_NEAR(result.nats, nats, 1e-6 * nats);

  auto pieces = documents.source(/*piece_bytes=*/16);
  auto whole = documents.source();
  const auto in_pieces = evaluate_perplexity(decoder, tokenizer, pieces, {});
  const auto at_once = evaluate_perplexity(decoder, tokenizer, whole, {});
  EXPECT_EQ(in_pieces.nats, at_once.nats);
  EXPECT_EQ(in_pieces.words, at_once.words);
  EXPECT_EQ(in_pieces.documents.size(), at_once.documents.size());
}

TEST(Perplexity, SharesTheCostOutToItsDocuments) {
  const Documents documents;
  auto source = documents.source();
  const auto all = evaluate_perplexity(tiny_decoder(), tiny_tokenizer(), source, {8, 4});
  ASSERT_EQ(all.documents.size(), 3u);
  double nats = 0;
  int64_t tokens = 0;
  for (size_t i = 0; i < 3; ++i) {
    auto single = documents.text((i == 0 ? kFirst : i == 1 ? kSecond : kThird));
    const auto alone = evaluate_perplexity(tiny_decoder(), tiny_tokenizer(), single, {8, 4});
    EXPECT_EQ(all.documents[i].tokens, alone.tokens);
    EXPECT_NEAR(all.documents[i].nats, alone.nats, 1e-5 * alone.nats);
    nats += all.documents[i].nats;
    tokens += all.documents[i].tokens;
  }
  EXPECT_NEAR(nats, all.nats, 1e-9 * all.nats);
  EXPECT_EQ(tokens, all.tokens);
}

TEST(Perplexity, CountsWordsBytesAndDocumentsOfTheText) {
  const Documents documents;
  auto source = documents.source();
  const auto result = evaluate_perplexity(tiny_decoder(), tiny_tokenizer(), source, {});
  EXPECT_EQ(result.documents.size(), 3u);
  EXPECT_EQ(result.bytes, static_cast<int64_t>(kFirst.size() + kSecond.size() + kThird.size()));
  // "It was the best of times, it was the worst of times — and so on.": a no-break space separates words too.
  EXPECT_EQ(result.words, 16 + 1 + 12);
}

TEST(Perplexity, IsOneSumSeenPerTokenWordAndByte) {
  const Documents documents;
  auto source = documents.source();
  const auto result = evaluate_perplexity(tiny_decoder(), tiny_tokenizer(), source, {});
  const auto log_of = [](double perplexity, int64_t units) {
    return std::log(perplexity) * static_cast<double>(units);
  };
  EXPECT_NEAR(log_of(result.token_perplexity(), result.tokens), result.nats, 1e-12 * result.nats);
  EXPECT_NEAR(log_of(result.word_perplexity(), result.words), result.nats, 1e-12 * result.nats);
  EXPECT_NEAR(log_of(result.byte_perplexity(), result.bytes), result.nats, 1e-12 * result.nats);
  EXPECT_NEAR(std::exp2(result.bits_per_byte()), result.byte_perplexity(), 1e-12 * result.byte_perplexity());
}

TEST(Perplexity, IsTheVocabularyForAModelThatKnowsNothing) {
  auto decoder = tiny_decoder();
  {
    const torch::NoGradGuard no_gradients;
    for (const auto& entry : decoder->weights()) entry.weight.tensor().zero_();
  }
  const Documents documents;
  auto source = documents.source();
  const auto result = evaluate_perplexity(decoder, tiny_tokenizer(), source, {});
  // Every loss is log(259) rounded to float32, a relative error of at most log(259) 2^-24 in the exponential.
  const double expected = static_cast<double>(kTinyVocab);
  EXPECT_NEAR(result.token_perplexity(), expected, expected * std::log(expected) * 0x1p-24);
}

TEST(Perplexity, IsOneForAModelThatKnowsTheText) {
  const auto decoder = chain_decoder({{258, 'a'}, {'a', 'b'}, {'b', 'a'}});
  const Documents documents;
  auto source = documents.text("abababab");
  // 258 other tokens have exp(-sqrt(260)) of the likeliest's weight. A float32 loss is a difference of numbers near 16.
  const double expected = 1 + 258 * std::exp(-std::sqrt(260.0));
  const auto result = evaluate_perplexity(decoder, tiny_tokenizer(), source, {});
  EXPECT_NEAR(result.token_perplexity(), expected, 16 * 0x1p-23);
}

TEST(Perplexity, TakesSpecialTokensInATextAsText) {
  const Documents documents;
  auto source = documents.text("<|endoftext|>");
  EXPECT_EQ(evaluate_perplexity(tiny_decoder(), tiny_tokenizer(), source, {}).tokens, 13);
}

TEST(Perplexity, PredictsTheFirstTokenOnlyBehindAnEndOfText) {
  const Documents documents;
  const auto evaluate = [&](bool end_of_text, const std::string& content) {
    auto source = documents.text(content);
    return evaluate_perplexity(tiny_decoder(), tiny_tokenizer(end_of_text), source, {});
  };
  EXPECT_EQ(evaluate(true, "abc").tokens, 3);
  EXPECT_EQ(evaluate(false, "abc").tokens, 2);
  EXPECT_EQ(evaluate(false, "abc").bytes, 3);
  EXPECT_EQ(evaluate(true, "a").tokens, 1);
  EXPECT_THROW(evaluate(false, "a"), InputError);
}

TEST(Perplexity, SaysItsConvention) {
  const Documents documents;
  const auto expect = [&](bool end_of_text, const TextWindowOptions& options, const std::vector<std::string>& parts) {
    auto source = documents.source();
    const auto decoder = tiny_decoder(/*context=*/200);
    const auto result = evaluate_perplexity(decoder, tiny_tokenizer(end_of_text), source, options);
    std::string text;
    for (const auto& rule : result.conventions()) text += rule + "\n";
    for (const auto& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  };
  expect(true, {}, {"windows of 200 tokens every 200", "no document is longer", "<|endoftext|> opens"});
  expect(false, {16, 0}, {"16 tokens every 16", "sees one token", "first token is not predicted"});
  expect(true, {16, 4}, {"see 13 to 16 tokens"});
}

TEST(Perplexity, IsTheSameInChunksAndThroughASelectorThatKeepsAll) {
  const Documents documents;
  const auto evaluate = [&](Prefill* prefill) {
    auto source = documents.source();
    return evaluate_perplexity(tiny_decoder(/*context=*/64), tiny_tokenizer(), source, {40, 20}, prefill);
  };
  const auto plain = evaluate(nullptr);
  PrefillMeter of_dense;
  Prefill dense({}, {}, &of_dense);
  EXPECT_EQ(evaluate(&dense).nats, plain.nats);
  EXPECT_EQ(all_layers(of_dense.layers()).all_heads().density(), 1);
  const Json all = {{"p", 1}, {"block_size", 32}};
  for (const auto& options : {PrefillOptions{.chunk = 7},
                              {.selector = "spectral", .settings = all},
                              {.selector = "spectral", .settings = all, .chunk = 16}}) {
    PrefillMeter meter({.recall_rows = 1});
    Prefill prefill(options, {}, &meter);
    const auto found = evaluate(&prefill);
    EXPECT_NEAR(found.nats, plain.nats, 1e-5 * plain.nats) << options.selector << options.chunk;
    EXPECT_EQ(found.tokens, plain.tokens);
  }
  // Keeping only each query's own block and the first changes the figures, and the recall shows how much is missing.
  PrefillMeter meter({.recall_rows = 9});
  Prefill window({.selector = "sink_window", .settings = {{"window", 1}, {"sink", 0}, {"block_size", 32}}}, {}, &meter);
  const auto less = evaluate(&window);
  EXPECT_GT(std::abs(less.nats - plain.nats), 1e-3 * plain.nats);
  EXPECT_LT(all_layers(meter.layers()).all_heads().recall(), 1);
}

TEST(Perplexity, HasNoFigurePerWordForATextOfWhiteSpace) {
  const Documents documents;
  auto source = documents.text(" \n\t ");
  const auto result = evaluate_perplexity(tiny_decoder(), tiny_tokenizer(), source, {});
  EXPECT_EQ(result.words, 0);
  EXPECT_TRUE(std::isnan(result.word_perplexity()));
  EXPECT_GT(result.byte_perplexity(), 1);
}

TEST(Perplexity, RejectsWindowsAndStridesOutOfRange) {
  const Documents documents;
  for (const auto& options : {TextWindowOptions{65, 0}, {-1, 0}, {16, 17}, {16, -1}, {0, 65}}) {
    auto source = documents.source();
    EXPECT_THROW(evaluate_perplexity(tiny_decoder(/*context=*/64), tiny_tokenizer(), source, options), InputError);
  }
}

TEST(Perplexity, RejectsTextThatIsEmptyOrNotUtf8) {
  const Documents documents;
  auto empty = documents.text("");
  EXPECT_THROW(evaluate_perplexity(tiny_decoder(), tiny_tokenizer(), empty, {}), InputError);
  auto latin1 = documents.text("caf\xE9 noir");
  EXPECT_THROW(evaluate_perplexity(tiny_decoder(), tiny_tokenizer(), latin1, {}), InputError);
}

TEST(Perplexity, RejectsATokenizerWithIdsThatTheModelLacks) {
  const Documents documents;
  auto source = documents.text("xyz");
  EXPECT_THROW(evaluate_perplexity(tiny_decoder(64, /*vocab_size=*/100), tiny_tokenizer(), source, {}), InputError);
}

TEST(Perplexity, FailsWhenALossIsNotFinite) {
  auto decoder = tiny_decoder();
  {
    const torch::NoGradGuard no_gradients;
    decoder->norm.weight.tensor().fill_(std::numeric_limits<float>::quiet_NaN());
  }
  const Documents documents;
  auto source = documents.source();
  EXPECT_THROW(evaluate_perplexity(decoder, tiny_tokenizer(), source, {}), FailedError);
}

}  // namespace
}  // namespace prism
