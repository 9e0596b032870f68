#include "prism/analysis/attention/head_patterns.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

#include "prism/core/error.h"
#include "prism/core/random.h"

namespace prism {
namespace {

/// weights[r][t][position of t + offset], 0 if there is no such key.
torch::Tensor weight_at(const AttentionRows& rows, int64_t offset) {
  const auto& weights_RTS = rows.weights_RTS;
  const int64_t queries = weights_RTS.size(1), first = rows.first_position + offset;
  const auto found = weights_RTS.diagonal(first, 1, 2);
  const int64_t missing = queries - found.size(1);
  return missing == 0 ? found : at::constant_pad_nd(found, {missing, 0});
}

/// Random sequences for the induction score: enough for a mean accurate to 0.01.
constexpr int64_t kRepeatedRows = 16, kLongestHalf = 128;

/// The kinds in the order of the measures.
enum Kind : size_t { kPrevious, kFirst, kSelf, kSame, kPunctuation };

}  // namespace

HeadPatternProbe::HeadPatternProbe(const std::vector<LayerConfig>& layers, const std::vector<bool>& is_punctuation)
    : HeadMeansProbe(layers, QueryRange::all,
                     {[](const AttentionRows& rows) { return weight_at(rows, -1); },
                      [](const AttentionRows& rows) { return rows.weights_RTS.select(2, 0); },
                      [](const AttentionRows& rows) { return weight_at(rows, 0); },
                      [this](const AttentionRows& rows) {
                        const auto keys_S = keys_of(rows);
                        const auto queries_T = keys_S.narrow(0, rows.first_position, rows.weights_RTS.size(1));
                        const auto same_TS = queries_T.unsqueeze(1).eq(keys_S).tril(rows.first_position - 1);
                        return (rows.weights_RTS * same_TS).sum(-1);
                      },
                      [this](const AttentionRows& rows) {
                        const auto keys_S = keys_of(rows);
                        const auto counts_S = is_punctuation_V.to(keys_S.device()).index_select(0, keys_S);
                        return at::matmul(rows.weights_RTS, counts_S.to(rows.weights_RTS.scalar_type()));
                      }},
                     "head_patterns") {
  is_punctuation_V = torch::zeros({static_cast<int64_t>(is_punctuation.size())}, torch::kBool);
  auto* flags = is_punctuation_V.mutable_data_ptr<bool>();
  for (size_t i = 0; i < is_punctuation.size(); ++i) flags[i] = is_punctuation[i];
}

void HeadPatternProbe::read(const torch::Tensor& tokens_BT) {
  const int64_t most = tokens_BT.max().item<int64_t>(), least = tokens_BT.min().item<int64_t>();
  PRISM_CHECK(least >= 0 && most < is_punctuation_V.size(0), "head_patterns",
              "expected tokens below {}; found {}; read text tokenized with the model's tokenizer.",
              is_punctuation_V.size(0), least < 0 ? least : most);
  tokens_BT_ = tokens_BT;
}

torch::Tensor HeadPatternProbe::keys_of(const AttentionRows& rows) const {
  PRISM_ASSERT(tokens_BT_.defined() && tokens_BT_.size(1) >= rows.weights_RTS.size(2), "head_patterns",
               "a pass over {} keys without read()", rows.weights_RTS.size(2));
  return tokens_BT_[rows.sequence].narrow(0, 0, rows.weights_RTS.size(2)).to(rows.weights_RTS.device());
}

torch::Tensor repeated_tokens(int64_t rows, int64_t half, int64_t vocab_size, int64_t seed) {
  Random random(static_cast<uint64_t>(seed));
  const auto first = torch::empty({rows, half}, torch::kLong);
  auto* tokens = first.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < rows * half; ++i)
    tokens[i] = static_cast<int64_t>(random.below(static_cast<uint64_t>(vocab_size)));
  return at::cat({first, first}, 1);
}

InductionProbe::InductionProbe(const std::vector<LayerConfig>& layers, int64_t half)
    : HeadMeansProbe(layers, QueryRange::last_half,
                     {[half](const AttentionRows& rows) { return weight_at(rows, 1 - half); }}, "induction") {}

InductionProbe measure_induction(Trunk& model, int64_t vocab_size, int64_t seed) {
  const auto& config = model.config();
  const int64_t half = std::min(kLongestHalf, config.context / 2);
  PRISM_CHECK(half >= 1, "analyse", "expected a context of at least 2 tokens; found {}; name another model.",
              config.context);
  InductionProbe probe(config.layers, half);
  ForwardContext context;
  context.probe = &probe;
  model.forward(repeated_tokens(kRepeatedRows, half, vocab_size, seed), context);
  return probe;
}

std::vector<HeadPattern> join_patterns(const HeadPatternProbe& patterns, const InductionProbe* induction) {
  const auto previous = patterns.means(kPrevious), first = patterns.means(kFirst), self = patterns.means(kSelf);
  const auto same = patterns.means(kSame), punctuation = patterns.means(kPunctuation);
  const auto repeated = induction == nullptr ? std::vector<std::vector<double>>() : induction->means(0);
  std::vector<HeadPattern> heads;
  for (size_t l = 0; l < previous.size(); ++l)
    for (size_t h = 0; h < previous[l].size(); ++h)
      heads.push_back({.layer = static_cast<int64_t>(l),
                       .head = static_cast<int64_t>(h),
                       .previous = previous[l][h],
                       .first = first[l][h],
                       .self = self[l][h],
                       .same = same[l][h],
                       .punctuation = punctuation[l][h],
                       .induction = induction == nullptr ? std::numeric_limits<double>::quiet_NaN() : repeated[l][h]});
  return heads;
}

bool is_punctuation(const std::string& text) {
  bool has_sign = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (std::isspace(byte) != 0) continue;
    if (byte == 0xE2 && i + 2 < text.size() && static_cast<unsigned char>(text[i + 1]) == 0x80 &&
        static_cast<unsigned char>(text[i + 2]) >= 0x90 && static_cast<unsigned char>(text[i + 2]) <= 0xA7) {
      i += 2;
    } else if (std::ispunct(byte) == 0) {
      return false;
    }
    has_sign = true;
  }
  return has_sign;
}

std::vector<bool> punctuation_tokens(const Tokenizer& tokenizer, int64_t vocab_size) {
  std::vector<bool> flags(static_cast<size_t>(vocab_size));
  for (int64_t i = 0; i < std::min(vocab_size, tokenizer.vocab_size()); ++i) {
    const auto id = static_cast<int32_t>(i);
    flags[static_cast<size_t>(i)] = is_punctuation(tokenizer.decode({&id, 1}, /*skip_special=*/true));
  }
  return flags;
}

}  // namespace prism
