#include "prism/sparse/methods/auto_selector.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "prism/core/error.h"
#include "prism/kernels/attention/attend.h"
#include "prism/sparse/forced_blocks.h"
#include "prism/sparse/option_checks.h"

namespace prism {
namespace {

/// Sparse attention must beat dense attention by more than the error of the cost model.
constexpr double kGain = 0.97;
/// Sampled rows of each head: one in kRowsPerSample, at most kMostSamples.
constexpr int64_t kRowsPerSample = 8, kMostSamples = 4;

/// The state of the spectral selector, and one state per sequence for sampled rows. Both are created when first needed,
/// which is never the case in short prompts.
struct AutoState : SelectorState {
  std::unique_ptr<SelectorState> spectral;
  std::vector<std::unique_ptr<SelectorState>> samples_B;

  void truncate(int64_t length) override {
    if (spectral != nullptr) spectral->truncate(length);
    for (auto& state : samples_B) state->truncate(length);
  }
};

SelectorInput of_sequence(SelectorInput input, int64_t b) {
  input.q_BTHD = input.q_BTHD.narrow(0, b, 1);
  input.k_BGSD = input.k_BGSD.narrow(0, b, 1);
  if (input.q_lengths_B.defined()) input.q_lengths_B = input.q_lengths_B.narrow(0, b, 1);
  if (input.kv_lengths_B.defined()) input.kv_lengths_B = input.kv_lengths_B.narrow(0, b, 1);
  return input;
}

/// Chooses rows such that each represents the same number of query-key pairs.
std::vector<int64_t> sampled_rows(const HeadBlocks& blocks) {
  const int64_t count = std::clamp(blocks.rows() / kRowsPerSample, int64_t{1}, kMostSamples);
  const auto first = static_cast<double>(blocks.first_query()), end = static_cast<double>(blocks.keys);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count && blocks.rows() > 0; ++i) {
    const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    const auto position = static_cast<int64_t>(std::sqrt(first * first + share * (end * end - first * first)));
    rows.push_back(blocks.row_of(std::clamp(position, blocks.first_query(), blocks.keys - 1) - blocks.first_query()));
  }
  return rows;
}

/// The queries of a call for which the selector chooses: those before the last rows of the prompt, which keep every
/// block they see.
HeadBlocks scored_part(const SelectorLengths& lengths, int64_t b, const HeadBlocks& blocks, int64_t last_dense) {
  const int64_t row = first_dense_row(lengths.prompt_rows(b, blocks.query_block), last_dense);
  const int64_t end = std::clamp(row * blocks.query_block, blocks.first_query(), blocks.keys);
  return {end - blocks.first_query(), end, blocks.query_block, blocks.key_block};
}

SpectralOptions without_dense_rows(SpectralOptions options) {
  options.last_dense = 0;
  return options;
}

/// Returns true if there are features to form bands from and attend() can skip the blocks that a mask omits.
bool can_be_sparse(const SelectorInput& input) {
  if (input.pairs.size() == 0) return false;
  AttentionInput attention;
  attention.q_BTHD = input.q_BTHD;
  attention.kv = {input.k_BGSD, input.k_BGSD, {}};
  attention.q_lengths_B = input.q_lengths_B;
  attention.kv_lengths_B = input.kv_lengths_B;
  return flash_backend_serves(attention);
}

/// Size of a call, over all sequences and heads.
struct CallSize {
  double pairs = 0, rows = 0;
  double tokens = 0, pooled = 0;                               ///< processed to select blocks for all rows
  double samples = 0, sampled_tokens = 0, sampled_pooled = 0;  ///< processed to select blocks for sampled rows
};

class AutoSelector : public Selector {
 public:
  AutoSelector(const AutoOptions& options, PrefillCosts costs)
      : options_(options),
        costs_(std::move(costs)),
        spectral_(make_spectral_selector(options.spectral)),
        sampler_(make_spectral_selector(without_dense_rows(options.spectral))) {
    check_share("auto", "overhead", options.overhead);
  }

  std::unique_ptr<SelectorState> make_state(const SelectorInput&) const override {
    return std::make_unique<AutoState>();
  }

  BlockMask select(const SelectorInput& input, SelectorState& kept_state) const override {
    auto& state = state_of<AutoState>(kept_state, "auto");
    const SelectorLengths lengths(input);
    BlockMask all{query_block(), key_block(), {}, {}};
    if (!can_be_sparse(input)) return all;
    const PrefillShape shape{input.q_BTHD.scalar_type(), input.q_BTHD.size(3), query_block(), key_block()};
    const auto known = costs_.find(shape);
    if (known == costs_.end()) {
      unknown_.insert(shape);
      return all;
    }
    const PrefillCost& cost = known->second;
    const auto size = size_of(input, lengths);
    if (size.samples == 0) return all;  // every row is dense
    const double dense = cost.dense_seconds(size.pairs, size.rows);
    if (cost.select_seconds(size.samples, size.sampled_tokens, size.sampled_pooled) > options_.overhead * dense)
      return all;
    const double choosing = cost.select_seconds(1, size.tokens, size.pooled);
    if (choosing > kGain * dense) return all;
    const auto expected = expected_work(input, lengths, state);
    // Selection counts twice: the expected gain must also cover its cost in case the mask is not used.
    if (2 * choosing + cost.sparse_seconds(expected, size.rows) > kGain * dense) return all;
    if (state.spectral == nullptr) state.spectral = spectral_->make_state(input);
    auto mask = spectral_->select(input, *state.spectral);
    return cost.sparse_seconds(kept_work(lengths, mask), size.rows) < kGain * dense ? mask : all;
  }

  std::vector<std::string> notes() const override {
    std::vector<std::string> notes;
    for (const auto& shape : unknown_)
      notes.push_back(fmt::format(
          "auto: no costs are known for heads {} wide in {} with blocks of {} x {} tokens; attention of such "
          "heads is dense.",
          shape.head_dim, c10::toString(shape.type), shape.query_block, shape.key_block));
    return notes;
  }

 private:
  int64_t query_block() const { return options_.spectral.blocks.queries(); }
  int64_t key_block() const { return options_.spectral.blocks.keys(); }

  CallSize size_of(const SelectorInput& input, const SelectorLengths& lengths) const {
    const auto heads = static_cast<double>(input.heads()), groups = static_cast<double>(input.k_BGSD.size(1));
    CallSize size;
    for (int64_t b = 0; b < input.q_BTHD.size(0); ++b) {
      const auto blocks = lengths.blocks(b, query_block(), key_block());
      const auto scored = scored_part(lengths, b, blocks, options_.spectral.last_dense);
      const auto queries = static_cast<double>(blocks.queries);
      size.pairs += heads * static_cast<double>(blocks.seen_pairs());
      size.rows += heads * static_cast<double>(blocks.rows());
      size.tokens += (heads + groups) * queries;
      size.pooled += heads * static_cast<double>(scored.visible_blocks());
      size.sampled_tokens += groups * queries;
      for (const int64_t row : sampled_rows(scored)) {
        size.samples += 1;
        size.sampled_tokens += heads * static_cast<double>(scored.end_position(row) - scored.first_position(row));
        size.sampled_pooled += heads * static_cast<double>(scored.visible(row));
      }
    }
    return size;
  }

  /// Estimates the kept work of all rows: exactly for dense ones, for others from sampled rows, each of which
  /// represents the same number of pairs.
  KeptWork expected_work(const SelectorInput& input, const SelectorLengths& lengths, AutoState& state) const {
    const auto heads = static_cast<double>(input.heads());
    KeptWork work;
    if (state.samples_B.empty())
      for (int64_t b = 0; b < input.q_BTHD.size(0); ++b)
        state.samples_B.push_back(sampler_->make_state(of_sequence(input, b)));
    for (int64_t b = 0; b < input.q_BTHD.size(0); ++b) {
      const auto blocks = lengths.blocks(b, query_block(), key_block());
      const auto scored = scored_part(lengths, b, blocks, options_.spectral.last_dense);
      work.pairs += heads * static_cast<double>(blocks.seen_pairs() - scored.seen_pairs());
      work.runs += heads * static_cast<double>(blocks.rows() - scored.rows());
      const auto rows = sampled_rows(scored);
      for (const int64_t row : rows) {
        const auto asked = of_row(of_sequence(input, b), scored, row);
        const SelectorLengths asked_lengths(asked);
        const auto kept = kept_work(asked_lengths, sampler_->select(asked, *state.samples_B[static_cast<size_t>(b)]));
        const auto row_pairs = asked_lengths.blocks(0, query_block(), key_block()).seen_pairs();
        const double represented = static_cast<double>(scored.seen_pairs()) / static_cast<double>(row_pairs) /
                                   static_cast<double>(rows.size());
        work.pairs += represented * kept.pairs;
        work.runs += represented * kept.runs;
      }
    }
    return work;
  }

  /// The input of one row of a sequence.
  static SelectorInput of_row(SelectorInput input, const HeadBlocks& blocks, int64_t row) {
    const int64_t first = blocks.first_position(row), end = blocks.end_position(row);
    input.q_BTHD = input.q_BTHD.narrow(1, first - blocks.first_query(), end - first);
    input.k_BGSD = input.k_BGSD.narrow(2, 0, end);
    input.q_lengths_B = torch::Tensor();
    input.kv_lengths_B = torch::Tensor();
    return input;
  }

  AutoOptions options_;
  PrefillCosts costs_;
  std::unique_ptr<Selector> spectral_, sampler_;
  mutable std::set<PrefillShape> unknown_;  ///< requested shapes without costs
};

}  // namespace

std::unique_ptr<Selector> make_auto_selector(const AutoOptions& options, PrefillCosts costs) {
  return std::make_unique<AutoSelector>(options, std::move(costs));
}

}  // namespace prism
