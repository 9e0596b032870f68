#include "prism/data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

constexpr int32_t kEndOfText = 0;

class Loader : public testing::Test {
 protected:
  /// Writes shards of these sizes. Token i of the sequence is i + 1, so that windows show where they come from.
  TokenDataset number(const std::vector<int64_t>& sizes, int64_t vocab_size = 100000) {
    int32_t next = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::vector<int32_t> tokens(static_cast<size_t>(sizes[i]));
      for (int32_t& token : tokens) token = next++;
      put(fmt::format("train_{:06}.bin", i), tokens, vocab_size);
    }
    return TokenDataset(folder_.path(), "train");
  }

  void put(const std::string& name, const std::vector<int32_t>& tokens, int64_t vocab_size = 100000) {
    TokenShardWriter writer(folder_.path() / name, vocab_size);
    writer.write(tokens);
    writer.commit();
  }

  void put_info(int64_t vocab_size, int64_t end_of_text, int64_t train_tokens, int64_t format = 1) {
    DatasetInfo info;
    info.prism_format = format;
    info.vocab_size = vocab_size;
    info.end_of_text = end_of_text;
    info.train_tokens = train_tokens;
    write_file(folder_.path() / "data.json", fields_to_json(info).dump());
  }

  TemporaryFolder folder_;
};

/// First tokens of the next `windows` rows.
std::vector<int64_t> starts(WindowLoader& loader, int64_t windows) {
  std::vector<int64_t> first;
  while (windows > 0) {
    const Batch batch = loader.next();
    for (int64_t row = 0; row < batch.rows; ++row)
      first.push_back(batch.tokens[static_cast<size_t>(row * batch.context)]);
    windows -= batch.rows;
  }
  return first;
}

TEST_F(Loader, HandsOutEveryWindowExactlyOnceAnEpochWhateverTheSize) {
  for (const int64_t windows : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 100, 1000}) {
    const TokenDataset data = number({windows * 3 + 1});
    WindowLoader loader(data, {.context = 3, .rows = 1, .seed = 5}, -1);
    ASSERT_EQ(loader.windows_per_epoch(), windows);
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> first = starts(loader, windows);
      std::sort(first.begin(), first.end());
      for (int64_t i = 0; i < windows; ++i) ASSERT_EQ(first[static_cast<size_t>(i)], 3 * i + 1) << windows;
    }
  }
}

TEST_F(Loader, MakesEveryTokenButTheFirstALabelOnce) {
  const TokenDataset data = number({10, 0, 7, 4});
  WindowLoader loader(data, {.context = 4, .rows = 5, .seed = 1}, -1);
  const Batch batch = loader.next();
  EXPECT_EQ(loader.position(), 5);
  std::set<int64_t> labels(batch.labels.begin(), batch.labels.end());
  EXPECT_EQ(labels.size(), 20u);
  EXPECT_EQ(*labels.begin(), 2);
  EXPECT_EQ(*labels.rbegin(), 21);
  for (size_t i = 0; i < batch.tokens.size(); ++i) EXPECT_EQ(batch.labels[i], batch.tokens[i] + 1);
  EXPECT_TRUE(batch.documents.empty());
}

TEST_F(Loader, LooksBackForTheWordThatAWindowOpensIn) {
  const std::vector<int64_t> sizes = {10, 0, 7, 14};
  const TokenDataset data = number(sizes);  // token i of the sequence is i + 1
  std::vector<uint8_t> word_starts(20);     // later ids start no word
  for (const size_t id : {3, 4, 9, 15}) word_starts[id] = 1;
  for (const int64_t stride : {1, 2, 4}) {
    const WindowOptions options{
        .context = 4, .rows = 3, .seed = 1, .stride = stride, .word_starts = word_starts, .shuffle = false};
    WindowLoader loader(data, options, -1);
    for (Batch batch = loader.next(); batch.rows > 0; batch = loader.next()) {
      ASSERT_EQ(batch.word_openings.size(), static_cast<size_t>(batch.rows));
      for (int64_t row = 0; row < batch.rows; ++row) {
        const int64_t first = batch.tokens[static_cast<size_t>(row * 4)];
        int64_t last = first - 1;  // back to a start, or to before the first token
        while (last > 0 && (last >= 20 || word_starts[static_cast<size_t>(last)] == 0)) --last;
        EXPECT_EQ(batch.word_openings[static_cast<size_t>(row)], last > 0 ? first - last : first - 1) << first;
      }
    }
  }
  WindowLoader without(data, {.context = 4, .rows = 3, .seed = 1}, -1);
  EXPECT_TRUE(without.next().word_openings.empty());
}

TEST_F(Loader, LeavesOutATailThatFillsNoWindow) {
  EXPECT_EQ(WindowLoader(number({8}), {.context = 4}, -1).windows_per_epoch(), 1);
  EXPECT_EQ(WindowLoader(number({9}), {.context = 4}, -1).windows_per_epoch(), 2);
}

TEST_F(Loader, OrdersWindowsBySeedAndEpoch) {
  const TokenDataset data = number({1001});
  const auto order = [&](int64_t seed, int64_t epoch) {
    WindowLoader loader(data, {.context = 1, .rows = 10, .seed = seed}, -1);
    loader.seek(epoch * 1000);
    return starts(loader, 1000);
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  // In a random order, about one window stays in place and about one is followed by its neighbour.
  const std::vector<int64_t> first = order(1, 0);
  int fixed = 0, followed = 0;
  for (size_t i = 0; i < first.size(); ++i) fixed += first[i] == static_cast<int64_t>(i) + 1;
  for (size_t i = 1; i < first.size(); ++i) followed += first[i] == first[i - 1] + 1;
  EXPECT_LT(fixed, 10);
  EXPECT_LT(followed, 10);
}

TEST_F(Loader, SpreadsEveryWindowEvenlyOverThePositions) {
  // Position of window 0 over 2000 seeds: chi-square over 8 cells, 7 degrees of freedom, 0.1% point 24.3.
  const TokenDataset data = number({9});
  int cells[8] = {};
  for (int64_t seed = 0; seed < 2000; ++seed) {
    WindowLoader loader(data, {.context = 1, .rows = 1, .seed = seed}, -1);
    const std::vector<int64_t> first = starts(loader, 8);
    ++cells[std::find(first.begin(), first.end(), 1) - first.begin()];
  }
  double chi_square = 0;
  for (const int count : cells) chi_square += (count - 250.0) * (count - 250.0) / 250.0;
  EXPECT_LT(chi_square, 24.3);
}

TEST_F(Loader, GivesTheSameWindowsWhateverTheRowsOfABatch) {
  const TokenDataset data = number({50});
  WindowLoader one(data, {.context = 3, .rows = 1, .seed = 9}, -1),
      many(data, {.context = 3, .rows = 7, .seed = 9}, -1);
  EXPECT_EQ(starts(one, 70), starts(many, 70));
}

TEST_F(Loader, ContinuesFromASavedPositionWithTheSameBatches) {
  const TokenDataset data = number({40, 40});
  const WindowOptions options{.context = 5, .rows = 4, .seed = 3};
  WindowLoader whole(data, options, -1);
  for (int i = 0; i < 7; ++i) whole.next();  // into the second epoch
  WindowLoader resumed(data, options, -1);
  resumed.seek(whole.position());
  for (int i = 0; i < 7; ++i) {
    const Batch a = whole.next(), b = resumed.next();
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.labels, b.labels);
  }
  EXPECT_NE(message_of([&] { resumed.seek(-1); }), "");
}

TEST_F(Loader, StartsWindowsAsFarApartAsAskedFor) {
  const TokenDataset data = number({16});
  WindowLoader every(data, {.context = 3, .rows = 2, .stride = 1, .shuffle = false}, -1);
  EXPECT_EQ(every.windows_per_epoch(), 13);
  EXPECT_EQ(starts(every, 13), (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}));
  WindowLoader some(data, {.context = 3, .rows = 2, .stride = 5, .shuffle = false}, -1);
  EXPECT_EQ(starts(some, 3), (std::vector<int64_t>{1, 6, 11}));
  EXPECT_EQ(some.next().rows, 0);
  WindowLoader shuffled(data, {.context = 3, .rows = 2, .seed = 4, .stride = 1}, -1);
  auto epoch = starts(shuffled, 13);
  epoch.resize(13);  // the last batch extends into the next epoch
  EXPECT_FALSE(std::is_sorted(epoch.begin(), epoch.end()));
  std::sort(epoch.begin(), epoch.end());
  for (int64_t i = 0; i < 13; ++i) EXPECT_EQ(epoch[static_cast<size_t>(i)], i + 1);
  EXPECT_REFUSED((WindowLoader(data, {.context = 3, .rows = 2, .stride = -1}, -1)), "a stride of at least 1");
}

TEST_F(Loader, EndsAfterOnePassInOrderWithoutShuffling) {
  const TokenDataset data = number({16});
  WindowLoader loader(data, {.context = 3, .rows = 2, .shuffle = false}, -1);
  EXPECT_EQ(starts(loader, 5), (std::vector<int64_t>{1, 4, 7, 10, 13}));
  EXPECT_EQ(loader.next().rows, 0);
  EXPECT_EQ(loader.position(), 5);
}

TEST_F(Loader, BeginsADocumentAtEveryEndOfTextToken) {
  put("train_000000.bin", {kEndOfText, 5, 6, kEndOfText, 7, kEndOfText, kEndOfText, 8, 9});
  const TokenDataset data(folder_.path(), "train");
  WindowLoader loader(data, {.context = 4, .rows = 2, .document_mask = true, .shuffle = false}, kEndOfText);
  const Batch batch = loader.next();
  EXPECT_EQ(batch.tokens, (std::vector<int64_t>{kEndOfText, 5, 6, kEndOfText, 7, kEndOfText, kEndOfText, 8}));
  EXPECT_EQ(batch.documents, (std::vector<int32_t>{0, 0, 0, 1, 0, 1, 2, 2}));
  EXPECT_NE(message_of([&] { WindowLoader(data, {.context = 4, .document_mask = true}, -1); }).find("document_mask"),
            std::string::npos);
}

TEST_F(Loader, RefusesDataShorterThanAWindow) {
  const TokenDataset data = number({4});
  EXPECT_NE(message_of([&] { WindowLoader(data, {.context = 4}, -1); }).find("context + 1 = 5 tokens"),
            std::string::npos);
  EXPECT_EQ(message_of([&] { WindowLoader(data, {.context = 3}, -1); }), "");
  EXPECT_NE(message_of([&] { WindowLoader(data, {.context = 0}, -1); }), "");
  EXPECT_NE(message_of([&] { WindowLoader(number({0}), {.context = 1}, -1); }), "");
}

TEST_F(Loader, FindsPublishedShardsByTheWordsOfTheirNames) {
  put("fineweb_val_000000.bin", {1, 2});
  put("fineweb_train_000001.bin", {3, 4, 5});
  put("constrain_000000.bin", {6});
  put("tiny_train.bin", {7});
  write_file(folder_.path() / "train_notes.txt", "no shard");
  EXPECT_EQ(TokenDataset(folder_.path(), "valid").size(), 2);
  const TokenDataset train(folder_.path(), "train");
  std::vector<int64_t> tokens(4);
  ASSERT_EQ(train.size(), 4);
  train.read(0, tokens);
  EXPECT_EQ(tokens, (std::vector<int64_t>{3, 4, 5, 7}));
  EXPECT_FALSE(train.info());
}

TEST_F(Loader, RefusesAFolderWithoutShards) {
  EXPECT_NE(message_of([&] { TokenDataset(folder_.path(), "train"); }).find("found none"), std::string::npos);
  EXPECT_NE(message_of([&] { TokenDataset(folder_.path() / "absent", "train"); }).find("found nothing"),
            std::string::npos);
}

TEST_F(Loader, RefusesADamagedShardByName) {
  number({5, 5});
  const auto path = folder_.path() / "train_000001.bin";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 1);
  EXPECT_NE(message_of([&] { TokenDataset(folder_.path(), "train"); }).find("train_000001.bin"), std::string::npos);
}

TEST_F(Loader, RefusesShardsThatContradictDataJson) {
  number({5, 5});
  put_info(100000, -1, 10);
  EXPECT_EQ(TokenDataset(folder_.path(), "train").info()->train_tokens, 10);
  std::filesystem::remove(folder_.path() / "train_000001.bin");
  EXPECT_NE(message_of([&] { TokenDataset(folder_.path(), "train"); }).find("expected 10 train tokens"),
            std::string::npos);
  put_info(100000, -1, 5, 2);
  EXPECT_NE(message_of([&] { TokenDataset(folder_.path(), "train"); }).find("prism_format 1"), std::string::npos);
  put_info(10, 10, 5);
  EXPECT_NE(message_of([&] { TokenDataset(folder_.path(), "train"); }).find("the opening token"), std::string::npos);
  DatasetInfo negative;
  negative.vocab_size = 10;
  negative.train_documents = -1;
  write_file(folder_.path() / "data.json", fields_to_json(negative).dump());
  EXPECT_REFUSED(TokenDataset(folder_.path(), "train"), "counts of at least 0; found -1");
  std::filesystem::remove(folder_.path() / "data.json");
  std::filesystem::create_symlink("nowhere", folder_.path() / "data.json");
  EXPECT_REFUSED(TokenDataset(folder_.path(), "train"), "No such file");
  std::filesystem::remove(folder_.path() / "data.json");
  write_file(folder_.path() / "data.json", "{");
  EXPECT_NE(message_of([&] { TokenDataset(folder_.path(), "train"); }), "");
}

TEST_F(Loader, RefusesTokensOutsideTheVocabularyWhenTheyAreRead) {
  number({10});
  put_info(10, -1, 10);
  const TokenDataset data(folder_.path(), "train");
  std::vector<int64_t> tokens(9);
  data.read(0, tokens);
  EXPECT_NE(message_of([&] { data.read(1, tokens); }).find("found 10 at position 9"), std::string::npos);
  EXPECT_THROW(data.read(2, tokens), InternalError);
  EXPECT_THROW(data.read(-1, tokens), InternalError);
}

TEST_F(Loader, RefusesADatasetWhoseWritingWasCutOff) {
  number({5});
  std::filesystem::create_directory(folder_.path() / kUnfinishedName);
  EXPECT_NE(message_of([&] { TokenDataset(folder_.path(), "train"); }).find("interrupted"), std::string::npos);
}

TEST_F(Loader, KnowsOtherTokensOfTheSameNumberByTheirFingerprint) {
  const uint64_t first = number({3000, 2000}).fingerprint();
  EXPECT_EQ(number({3000, 2000}).fingerprint(), first);
  std::vector<int32_t> others(2000, 7);
  put("train_000001.bin", others);
  EXPECT_NE(TokenDataset(folder_.path(), "train").fingerprint(), first);
  put("train_000001.bin", {});
  put("train_000000.bin", {5});
  EXPECT_NE(TokenDataset(folder_.path(), "train").fingerprint(), 0u) << "a single token";
}

/// The parts of a mixture. A token's thousands say its part, the rest its window.
class Mixture : public testing::Test {
 protected:
  static constexpr int64_t kPart = 1000;

  Mixture() {
    for (int32_t part = 0; part < 3; ++part) {
      std::vector<int32_t> tokens;
      for (int32_t window = 0; window < 5 + part; ++window)
        tokens.insert(tokens.end(), 4, part * static_cast<int32_t>(kPart) + window);
      tokens.push_back(0);
      const TemporaryFolder& folder = folders_.emplace_back();
      TokenShardWriter writer(folder.path() / "train_000000.bin", 100000);
      writer.write(tokens);
      writer.commit();
      data_.emplace_back(folder.path(), "train");
    }
  }

  WindowLoader loader(const std::vector<double>& weights, int64_t seed = 1) const {
    std::vector<WeightedData> mixture;
    for (size_t i = 0; i < weights.size(); ++i) mixture.push_back({&data_[i], weights[i]});
    return WindowLoader(mixture, {.context = 4, .rows = 3, .seed = seed}, -1);
  }

  std::deque<TemporaryFolder> folders_;
  std::deque<TokenDataset> data_;
};

TEST_F(Mixture, HoldsEachPartAsOftenAsItsWeightSays) {
  auto windows = loader({3, 1, 4});
  for (int cycle = 0; cycle < 3; ++cycle) {
    std::map<int64_t, int64_t> of_part;
    for (const int64_t token : starts(windows, WindowLoader::kCycle / 3 * 3)) ++of_part[token / kPart];
    starts(windows, 3);  // three does not divide a power of two
    EXPECT_NEAR(static_cast<double>(of_part[0]), WindowLoader::kCycle * 3 / 8.0, 4);
    EXPECT_NEAR(static_cast<double>(of_part[1]), WindowLoader::kCycle * 1 / 8.0, 4);
    EXPECT_NEAR(static_cast<double>(of_part[2]), WindowLoader::kCycle * 4 / 8.0, 4);
  }
}

TEST_F(Mixture, GoesThroughEveryPartInEpochsOfItsOwn) {
  auto windows = loader({0.2, 0.5, 0.3});
  EXPECT_EQ(windows.windows_per_epoch(), 5 + 6 + 7);
  std::map<int64_t, std::vector<int64_t>> seen;
  for (const int64_t token : starts(windows, 9000)) seen[token / kPart].push_back(token % kPart);
  for (int64_t part = 0; part < 3; ++part) {
    const auto& order = seen[part];
    const size_t count = 5 + static_cast<size_t>(part);
    ASSERT_GE(order.size(), 10 * count);
    bool other_order = false;
    for (size_t epoch = 0; epoch < 10; ++epoch) {
      const auto begin = order.begin() + static_cast<std::ptrdiff_t>(epoch * count);
      const std::vector<int64_t> now(begin, begin + static_cast<std::ptrdiff_t>(count));
      EXPECT_EQ(std::set<int64_t>(now.begin(), now.end()).size(), count) << part << " " << epoch;
      other_order |= !std::equal(now.begin(), now.end(), order.begin());
    }
    EXPECT_TRUE(other_order);
  }
}

TEST_F(Mixture, IsMixedEverywhereAndBySeed) {
  auto one = loader({1, 1}), two = loader({1, 1}, 2);
  const auto first = starts(one, 300), second = starts(two, 300);
  EXPECT_NE(first, second);
  int changes = 0;
  for (size_t i = 1; i < first.size(); ++i) changes += first[i] / kPart != first[i - 1] / kPart;
  EXPECT_NEAR(changes, 150, 50);
}

TEST_F(Mixture, GoesOnFromASavedPosition) {
  auto whole = loader({1, 2, 3}), later = loader({1, 2, 3});
  starts(whole, 5001);
  later.seek(whole.position());
  EXPECT_EQ(starts(whole, 300), starts(later, 300));
}

TEST_F(Mixture, OfOnePartIsThatPart) {
  const WindowOptions options{.context = 4, .rows = 3, .seed = 1};
  WindowLoader plain(data_[0], options, -1);
  auto mixture = loader({7});
  EXPECT_EQ(starts(plain, 60), starts(mixture, 60));
}

TEST_F(Mixture, RefusesWeightsThatMakeNone) {
  EXPECT_REFUSED(loader({}), "an empty mixture");
  EXPECT_REFUSED(loader({1, 0}), "positive weights");
  EXPECT_REFUSED(loader({1, -1}), "positive weights");
  EXPECT_REFUSED(loader({1, std::nan("")}), "positive weights");
  EXPECT_REFUSED(loader({1, 1e-4}), "1/4096");
}

TEST_F(Loader, ReadsAcrossShards) {
  const TokenDataset data = number({3, 0, 1, 0, 4});
  for (int64_t first = 0; first <= 8; ++first) {
    for (int64_t count = 0; first + count <= 8; ++count) {
      std::vector<int64_t> tokens(static_cast<size_t>(count));
      data.read(first, tokens);
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(tokens[static_cast<size_t>(i)], first + i + 1);
    }
  }
}

}  // namespace
}  // namespace prism
