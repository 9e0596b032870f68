// Pages, sequences of their own lengths, and steps of the key/value cache.
#include "prism/attention/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "prism/core/error.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

const std::vector<LayerConfig>& two_layers() {
  static const std::vector<LayerConfig> layers = [] {
    std::vector<LayerConfig> made(2);
    made[0].heads = 2, made[0].kv_heads = 1, made[0].head_dim = 12;
    made[1].heads = 4, made[1].kv_heads = 4, made[1].head_dim = 6;
    return made;
  }();
  return layers;
}

/// A cache beside a plain copy of what it should hold.
class Checked {
 public:
  explicit Checked(const KvCacheOptions& options) : cache(two_layers(), options), whole_(options.sequences) {}

  /// Appends random keys and values.
  void step(const std::vector<SequenceRows>& rows) {
    begin(rows);
    cache.end();
    int64_t first = 0;
    for (const auto& each : rows) {
      for (size_t l = 0; l < 2; ++l)
        for (auto [stored, more] :
             {std::pair{&whole(each.sequence)[l].k, keys_[l]}, {&whole(each.sequence)[l].v, values_[l]}}) {
          const auto own = more.narrow(0, first, each.tokens);
          *stored = stored->defined() ? at::cat({*stored, own}) : own;
        }
      first += each.tokens;
    }
  }
  /// The same without the end of the step.
  void begin(const std::vector<SequenceRows>& rows) {
    const auto total = std::accumulate(rows.begin(), rows.end(), int64_t{0},
                                       [](int64_t sum, const SequenceRows& each) { return sum + each.tokens; });
    cache.begin(rows);
    for (size_t l = 0; l < 2; ++l) {
      const auto& layer = two_layers()[l];
      keys_[l] = torch::randn({total, layer.kv_heads, layer.head_dim});
      values_[l] = torch::randn({total, layer.kv_heads, layer.head_dim});
      cache.append(l, at::cat({keys_[l], values_[l]}, 1));
    }
  }
  void truncate(int64_t length, int64_t sequence) {
    cache.truncate(length, sequence);
    for (auto& layer : whole(sequence))
      for (auto* stored : {&layer.k, &layer.v}) *stored = stored->narrow(0, 0, length);
  }
  void open_again(int64_t sequence) {
    cache.close(sequence);
    EXPECT_EQ(cache.open(), sequence) << "the number is free again";
    whole(sequence) = {};
  }
  void fork(int64_t length, int64_t sequence) {
    const int64_t forked = cache.fork(length, sequence);
    whole_.resize(std::max(whole_.size(), static_cast<size_t>(forked) + 1));
    whole(forked) = whole(sequence);
    for (auto& layer : whole(forked))
      for (auto* stored : {&layer.k, &layer.v}) *stored = stored->narrow(0, 0, length);
  }
  /// Returns true if a new row of each sequence would see all that was appended to it.
  void expect_whole() {
    for (size_t sequence = 0; sequence < whole_.size(); ++sequence) {
      if (!whole_[sequence][0].k.defined()) continue;
      cache.begin({{.sequence = static_cast<int64_t>(sequence), .tokens = 1}});
      for (size_t l = 0; l < 2; ++l) {
        AttentionInput input;
        input.kv = cache.pages(l, cache.groups()[0]);
        input.kv_lengths_B = cache.groups()[0].kv_lengths_B;
        const auto found = gather_pages(input);
        const auto& expected = whole_[sequence][l];
        const int64_t length = expected.k.size(0);
        EXPECT_EQ(cache.length(static_cast<int64_t>(sequence)), length);
        EXPECT_TRUE(torch::equal(found.k_BGSD[0].narrow(1, 0, length), expected.k.transpose(0, 1))) << sequence << l;
        EXPECT_TRUE(torch::equal(found.v_BGSE[0].narrow(1, 0, length), expected.v.transpose(0, 1))) << sequence << l;
      }
    }
  }

  KvCache cache;

 private:
  struct Layer {
    torch::Tensor k, v;
  };
  std::vector<Layer>& whole(int64_t sequence) {
    auto& layers = whole_[static_cast<size_t>(sequence)];
    layers.resize(2);
    return layers;
  }
  std::vector<std::vector<Layer>> whole_;
  std::array<torch::Tensor, 2> keys_, values_;
};

TEST(KvCache, HoldsSequencesOfTheirOwnLengths) {
  torch::manual_seed(1);
  Checked checked({.sequences = 3});
  checked.step({{.sequence = 2, .tokens = 200}, {.sequence = 0, .tokens = 3}});
  checked.step({{.sequence = 1, .tokens = 128}});
  for (int i = 0; i < 3; ++i)
    checked.step({{.sequence = 1, .tokens = 1, .decodes = true},
                  {.sequence = 2, .tokens = 1, .decodes = true},
                  {.sequence = 0, .tokens = 125 + i}});
  checked.expect_whole();
}

TEST(KvCache, GrowsAndKeepsWhatItHolds) {
  torch::manual_seed(1);
  Checked checked({.sequences = 2, .positions = 128});
  for (const int64_t tokens : {100, 100, 1000, 1})
    checked.step({{.sequence = 1, .tokens = tokens}, {.sequence = 0, .tokens = 7}});
  checked.expect_whole();
}

TEST(KvCache, UsesThePagesOfTruncatedAndClosedSequencesAgain) {
  torch::manual_seed(1);
  Checked checked({.sequences = 2});
  checked.step({{.sequence = 0, .tokens = 300}, {.sequence = 1, .tokens = 300}});
  const auto* before = checked.cache.pages(0, {}).k_BGSD.const_data_ptr();
  for (int round = 0; round < 5; ++round) {
    checked.truncate(100 + round, 0);
    checked.open_again(1);
    checked.step({{.sequence = 1, .tokens = 300 - round}, {.sequence = 0, .tokens = 200 - round}});
    checked.expect_whole();
  }
  EXPECT_EQ(checked.cache.pages(0, {}).k_BGSD.const_data_ptr(), before) << "no more memory was needed";
}

TEST(KvCache, CopiesAPageThatForksShareWhenEitherWrites) {
  torch::manual_seed(1);
  Checked checked({.sequences = 1, .positions = 12 * KvCache::kPage});
  checked.step({{.sequence = 0, .tokens = 300}});
  checked.fork(300, 0);  // sequence 1
  checked.fork(128, 0);  // sequence 2, whole pages alone
  checked.fork(200, 1);  // sequence 3
  const auto* before = checked.cache.pages(0, {}).k_BGSD.const_data_ptr();
  checked.step({{.sequence = 1, .tokens = 1, .decodes = true},
                {.sequence = 3, .tokens = 1, .decodes = true},
                {.sequence = 0, .tokens = 5},
                {.sequence = 2, .tokens = 140}});
  checked.truncate(130, 0);  // back into a page that others use
  checked.step({{.sequence = 0, .tokens = 40}, {.sequence = 3, .tokens = 200}});
  checked.expect_whole();
  checked.open_again(0);
  checked.step({{.sequence = 0, .tokens = 400}, {.sequence = 1, .tokens = 3}});
  checked.expect_whole();
  EXPECT_EQ(checked.cache.pages(0, {}).k_BGSD.const_data_ptr(), before) << "14 pages without sharing";
}

TEST(KvCache, ForgetsAStepThatDoesNotEnd) {
  torch::manual_seed(1);
  Checked checked({.sequences = 1});
  checked.step({{.sequence = 0, .tokens = 130}});
  checked.begin({{.sequence = 0, .tokens = 50}});
  checked.step({{.sequence = 0, .tokens = 2}});
  checked.expect_whole();
}

TEST(KvCache, KeepsInt8WithAScaleForEachHeadAndPosition) {
  torch::manual_seed(1);
  KvCache cache(two_layers(), {.type = torch::kChar}), other(two_layers(), {.type = torch::kChar});
  const auto k = torch::randn({150, 4, 6}) * torch::rand({150, 4, 1}), v = torch::zeros({150, 4, 6});
  cache.begin({{.sequence = 0, .tokens = 150}});
  cache.append(0, torch::ones({150, 2, 12}));
  cache.append(1, at::cat({k, v}, 1));
  const auto gathered = [](KvCache& from) {
    AttentionInput input;
    input.q_BTHD = torch::zeros({1, 1, 4, 6});
    input.kv = from.pages(1, from.groups()[0]);
    input.kv_lengths_B = from.groups()[0].kv_lengths_B;
    return gather_pages(input);
  };
  const auto found = gathered(cache);
  const auto error = (found.k_BGSD[0].narrow(1, 0, 150) - k.transpose(0, 1)).abs();
  const auto most = k.transpose(0, 1).abs().amax(-1, true) / 127 * (0.5 + 1e-4);
  EXPECT_TRUE((error <= most).all().item<bool>()) << "half a step of each row's own scale";
  EXPECT_TRUE(torch::equal(found.v_BGSE[0].narrow(1, 0, 150), v.transpose(0, 1))) << "rows of zeros stay zeros";
  cache.end();
  other.restore(cache.copy(150));
  other.begin({{.sequence = 0, .tokens = 1}});
  EXPECT_TRUE(torch::equal(gathered(other).k_BGSD.narrow(2, 0, 150), found.k_BGSD.narrow(2, 0, 150)));
  auto layers = two_layers();
  layers[0].budget.kind = "fixed";
  EXPECT_REFUSED(KvCache(layers, {.type = torch::kChar}), "for a model with head budgets; found int8");
}

TEST(KvCache, RefusesWrongLengths) {
  Checked checked({.sequences = 1});
  checked.step({{.sequence = 0, .tokens = 2}});
  EXPECT_REFUSED(checked.cache.truncate(3), "expected a length up to 2; found 3");
  EXPECT_THROW(checked.cache.length(1), InternalError);
  EXPECT_THROW(checked.cache.begin({{.sequence = 0, .tokens = 2}, {.sequence = 0, .tokens = 1, .decodes = true}}),
               InternalError);
}

}  // namespace
}  // namespace prism
