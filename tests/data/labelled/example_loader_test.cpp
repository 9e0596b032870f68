#include "prism/data/labelled/example_loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/data/labelled/tokenize_labelled.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/data/byte_tokenizer.h"

namespace prism {
namespace {

constexpr int64_t kExamples = 1003;

/// Texts of 1 to 50 bytes, each after the opening token.
const LabelledDataset& varied_examples() {
  static const TemporaryFolder folder;
  static const LabelledDataset data = [] {
    Random random(1);
    std::string rows;
    for (int64_t i = 0; i < kExamples; ++i)
      rows += std::to_string(i % 3) + "," + std::string(1 + random.below(50), static_cast<char>('a' + i % 26)) + "\n";
    write_file(folder.path() / "rows.csv", rows);
    tokenize_labelled({{(folder.path() / "rows.csv").string()}, {}, {}}, byte_tokenizer(), folder.path() / "data",
                      {.examples = {.label = "1"}, .valid_share = 0});
    return LabelledDataset(folder.path() / "data", "train");
  }();
  return data;
}

std::vector<int64_t> examples_of_epoch(ExampleLoader& loader, int64_t epoch) {
  std::vector<int64_t> all;
  for (int64_t n = 0; n < loader.batches_per_epoch(); ++n) {
    const auto batch = loader.batch(epoch * loader.batches_per_epoch() + n);
    all.insert(all.end(), batch.examples.begin(), batch.examples.end());
  }
  return all;
}

TEST(ExampleLoader, ShowsEveryExampleAtMostOncePerEpochAndLeavesNoneOutForGood) {
  ExampleLoader loader(varied_examples(), {.context = 64, .rows = 4});
  EXPECT_EQ(loader.batches_per_epoch(), kExamples / 4);
  std::set<int64_t> seen;
  for (const int64_t epoch : {0, 1, 2}) {
    const auto all = examples_of_epoch(loader, epoch);
    EXPECT_EQ(static_cast<int64_t>(all.size()), kExamples / 4 * 4);
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), all.size());
    seen.insert(all.begin(), all.end());
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), kExamples);
  EXPECT_NE(examples_of_epoch(loader, 0), examples_of_epoch(loader, 1));
}

TEST(ExampleLoader, KnowsTheMeanLength) {
  for (const int64_t context : {10, 64}) {
    double sum = 0;
    for (int64_t i = 0; i < kExamples; ++i)
      sum += static_cast<double>(std::min<size_t>(varied_examples().tokens(i).size(), static_cast<size_t>(context)));
    EXPECT_DOUBLE_EQ(ExampleLoader(varied_examples(), {.context = context, .rows = 4}).mean_length(), sum / kExamples);
  }
}

TEST(ExampleLoader, PadsEachBatchToItsLongestExample) {
  ExampleLoader loader(varied_examples(), {.context = 64, .rows = 4});
  int64_t padding = 0, tokens = 0;
  for (int64_t n = 0; n < loader.batches_per_epoch(); ++n) {
    const auto batch = loader.batch(n);
    EXPECT_EQ(batch.width, *std::max_element(batch.lengths.begin(), batch.lengths.end()));
    for (int64_t b = 0; b < batch.rows; ++b) {
      const auto i = static_cast<size_t>(b);
      const auto expected = varied_examples().tokens(batch.examples[i]);
      ASSERT_EQ(static_cast<size_t>(batch.lengths[i]), expected.size());
      EXPECT_EQ(batch.labels[i], batch.examples[i] % 3);
      const auto row = batch.tokens.begin() + b * batch.width;
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), row));
      EXPECT_TRUE(std::all_of(row + batch.lengths[i], row + batch.width, [](int64_t token) { return token == 0; }));
      tokens += batch.lengths[i];
      padding += batch.width - batch.lengths[i];
    }
  }
  // Batches of 4 from pools of 256 sorted lengths of 2 to 51 tokens.
  EXPECT_LT(static_cast<double>(padding), 0.05 * static_cast<double>(tokens));
}

TEST(ExampleLoader, MakesABatchFromItsNumberAlone) {
  ExampleLoader forwards(varied_examples(), {.context = 64, .rows = 7, .seed = 3}), backwards = forwards;
  std::map<int64_t, std::vector<int64_t>> seen;
  for (int64_t n = 0; n < 400; ++n) seen[n] = forwards.batch(n).examples;
  for (int64_t n = 399; n >= 0; n -= 7) EXPECT_EQ(backwards.batch(n).examples, seen[n]) << n;
  ExampleLoader other(varied_examples(), {.context = 64, .rows = 7, .seed = 4});
  EXPECT_NE(other.batch(0).examples, seen[0]);
}

TEST(ExampleLoader, DoesNotOrderBatchesByLength) {
  ExampleLoader loader(varied_examples(), {.context = 64, .rows = 4});
  std::vector<int64_t> widths;
  for (int64_t n = 0; n < 64; ++n) widths.push_back(loader.batch(n).width);
  EXPECT_FALSE(std::is_sorted(widths.begin(), widths.end()));
}

TEST(ExampleLoader, UsesNestedFractions) {
  std::set<int64_t> before;
  for (const double fraction : {0.1, 0.25, 0.5, 1.0}) {
    std::set<int64_t> used;
    for (const int64_t seed : {1, 2}) {
      ExampleLoader loader(varied_examples(),
                           {.context = 64, .rows = 8, .seed = seed, .fraction = fraction, .shuffle = false});
      const auto all = examples_of_epoch(loader, 0);
      EXPECT_EQ(static_cast<int64_t>(all.size()), static_cast<int64_t>(fraction * kExamples));
      const std::set<int64_t> examples(all.begin(), all.end());
      EXPECT_TRUE(used.empty() || used == examples) << "the same for every seed";
      used = examples;
    }
    EXPECT_TRUE(std::includes(used.begin(), used.end(), before.begin(), before.end())) << fraction;
    before = used;
  }
}

TEST(ExampleLoader, CutsAndCountsLongExamples) {
  ExampleLoader loader(varied_examples(), {.context = 20, .rows = 16});
  int64_t cut = 0;
  for (int64_t i = 0; i < kExamples; ++i) cut += static_cast<int64_t>(varied_examples().tokens(i).size() > 20);
  EXPECT_GT(cut, 100);
  EXPECT_EQ(loader.cut_examples(), cut);
  int64_t full = 0;
  for (int64_t n = 0; n < loader.batches_per_epoch(); ++n) {
    const auto batch = loader.batch(n);
    EXPECT_LE(batch.width, 20);
    full += std::count(batch.lengths.begin(), batch.lengths.end(), 20);
  }
  EXPECT_GE(full, cut);
}

TEST(ExampleLoader, EvaluatesInOrderOfLength) {
  ExampleLoader loader(varied_examples(), {.context = 64, .rows = 10, .shuffle = false});
  int64_t before = 0;
  for (int64_t n = 0; n < loader.batches_per_epoch(); ++n) {
    const auto batch = loader.batch(n);
    EXPECT_TRUE(std::is_sorted(batch.lengths.begin(), batch.lengths.end()));
    EXPECT_GE(batch.lengths.front(), before);
    before = batch.lengths.back();
  }
  EXPECT_EQ(loader.batch(loader.batches_per_epoch() - 1).rows, kExamples % 10);
}

TEST(ExampleLoader, RefusesOptionsOutOfRange) {
  const auto refused = [](ExampleLoaderOptions options) {
    return message_of([&] { ExampleLoader(varied_examples(), options); });
  };
  EXPECT_CONTAINS(refused({.fraction = 0}), "data.fraction: expected a share above 0");
  EXPECT_CONTAINS(refused({.fraction = 1.1}), "found 1.1");
  EXPECT_CONTAINS(refused({.fraction = 1e-4}), "expected at least one example of 1003");
  EXPECT_CONTAINS(refused({.rows = 2000}), "expected at least 2000 training examples");
  EXPECT_CONTAINS(refused({.context = 0}), "found 0 and 32");
  EXPECT_CONTAINS(refused({.rows = 0}), "found 512 and 0");
}

}  // namespace
}  // namespace prism
