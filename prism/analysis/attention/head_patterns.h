// What the heads of a model attend to: the previous token, the first token, itself, equal tokens, punctuation, and the
// token that followed an earlier copy of the current one (induction).
//
//   HeadPatternProbe probe(decoder->config().layers, is_punctuation);
//   context.probe = &probe;
//   probe.read(tokens_BT);                                 // before each pass
//   decoder(tokens_BT, context);
//   InductionProbe induction(decoder->config().layers, 64);
//   ...                                                    // then a pass over repeated_tokens()
//   for (const auto& head : join_patterns(probe, &induction)) fmt::print("{} {:.2f}\n", head.head, head.previous);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/analysis/attention/head_means.h"
#include "prism/models/trunk.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct HeadPattern {
  int64_t layer = 0, head = 0;
  double previous = 0, first = 0, self = 0, same = 0, punctuation = 0, induction = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("head", head, "head of the layer, counted from 0");
    v("previous", previous, "share of its attention on the previous token");
    v("first", first, "share on the first token of the sequence");
    v("self", self, "share on the query's own token");
    v("same", same, "share on earlier copies of the query's token");
    v("punctuation", punctuation, "share on punctuation");
    v("induction", induction, "in a repeated random sequence: share on the token that followed the same token before");
  }
};

/// Mean attention weights of each head over all queries t of the observed sequences:
///
///   previous A[t, t-1]   first A[t, 0]   self A[t, t]   same sum_(s < t, x_s = x_t) A[t, s]
///   punctuation sum_(s <= t, x_s is punctuation) A[t, s],       A = softmax(scale q k^T), x the tokens.
///
/// Kinds overlap: the first token may also be the previous one, or punctuation.
class HeadPatternProbe : public HeadMeansProbe {
 public:
  /// @param layers          the layers of the observed model.
  /// @param is_punctuation  one flag per token of the vocabulary.
  HeadPatternProbe(const std::vector<LayerConfig>& layers, const std::vector<bool>& is_punctuation);
  HeadPatternProbe(const HeadPatternProbe&) = delete;
  HeadPatternProbe& operator=(const HeadPatternProbe&) = delete;

  /// Sets the tokens of the next pass, int64; the pass must use no cache. @throws InputError for a token outside the
  /// vocabulary.
  void read(const torch::Tensor& tokens_BT);

 private:
  /// The token ids of the keys, int64 [S].
  torch::Tensor keys_of(const AttentionRows& rows) const;

  torch::Tensor is_punctuation_V, tokens_BT_;
};

/// `rows` sequences of `half` random tokens followed by the same tokens again, int64 [rows, 2 half].
torch::Tensor repeated_tokens(int64_t rows, int64_t half, int64_t vocab_size, int64_t seed);

/// The prefix-matching score of induction heads over repeated_tokens(): the mean of A[t, t - half + 1] over the queries
/// t of the second half, the weight on the token that followed the same token in the first half.
/// Source: Olsson et al. 2022, In-context learning and induction heads.
class InductionProbe : public HeadMeansProbe {
 public:
  InductionProbe(const std::vector<LayerConfig>& layers, int64_t half);
};

/// Runs a causal model over repeated_tokens(): 16 sequences of up to 128 tokens and their copies, fewer tokens if its
/// context is short. The mean is accurate to 0.01. @param vocab_size  of the tokenizer.
/// @throws InputError for a context of less than 2 tokens.
InductionProbe measure_induction(Trunk& model, int64_t vocab_size, int64_t seed);

/// Combines both for every head, layer by layer. @param patterns, induction  probes of the same model. Without an
/// induction probe, as of models that attend to all tokens, the share is NaN.
std::vector<HeadPattern> join_patterns(const HeadPatternProbe& patterns, const InductionProbe* induction);

/// Returns true if a token's text is punctuation: at least one sign of ASCII or of Unicode's General Punctuation
/// (dashes, quotation marks, the ellipsis), and otherwise only white space.
bool is_punctuation(const std::string& text);

/// is_punctuation() of each of a model's `vocab_size` tokens; false for those that the tokenizer does not have.
std::vector<bool> punctuation_tokens(const Tokenizer& tokenizer, int64_t vocab_size);

}  // namespace prism
