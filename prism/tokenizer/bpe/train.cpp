#include "prism/tokenizer/bpe/train.h"

#include <iterator>
#include <set>

#include "prism/core/error.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/utf8.h"
#include "prism/tokenizer/bpe/merge_learner.h"
#include "prism/tokenizer/bpe/word_counts.h"
#include "prism/tokenizer/split/pretokenizer.h"
#include "prism/tokenizer/tokenizer_file.h"

namespace prism {
namespace {

using nlohmann::json;
using Phase = TrainProgress::Phase;

void check(const BpeTrainOptions& options, int threads) {
  const auto smallest = static_cast<int64_t>(256 + options.special_tokens.size());
  PRISM_CHECK(options.vocab_size >= smallest, "train_bpe",
              "expected a vocab_size of at least {} (256 bytes and {}); found {}; raise it.", smallest,
              counted(std::ssize(options.special_tokens), "special token"), options.vocab_size);
  PRISM_CHECK(options.vocab_size <= kMaxTokens, "train_bpe", "expected a vocab_size of at most {}; found {}; lower it.",
              kMaxTokens, options.vocab_size);
  PRISM_CHECK(options.min_frequency >= 0, "train_bpe",
              "expected a min_frequency of at least 0; found {}; choose 2, the default, or another.",
              options.min_frequency);
  PRISM_CHECK(threads >= 1, "train_bpe", "expected at least one thread; found {}; choose 1 or more.", threads);
  std::set<std::string> seen;
  for (const auto& token : options.special_tokens) {
    PRISM_CHECK(!token.empty() && find_invalid_utf8(token) == std::string::npos, "train_bpe",
                "expected special tokens to be text; found {}; write text.",
                token.empty() ? "an empty one" : "one that is not UTF-8");
    PRISM_CHECK(seen.insert(token).second, "train_bpe",
                "expected every special token once; found {} twice; leave one out.", token);
  }
}

TokenizerFile make_file(const MergeLearner& learner, const BpeTrainOptions& options) {
  TokenizerFile file;
  const auto& spellings = learner.spellings();
  for (size_t id = 0; id < spellings.size(); ++id) file.vocab.push_back({static_cast<int32_t>(id), spellings[id]});
  file.merges = learner.merges();
  for (size_t id = 0; id < options.special_tokens.size(); ++id) {
    AddedToken token;
    token.id = static_cast<int32_t>(id);
    token.content = options.special_tokens[id];
    token.special = true;
    file.added.push_back(std::move(token));
  }
  file.pre_tokenizer = json::parse(Pretokenizer::json_for_pattern(options.pattern));
  file.rest["decoder"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  file.model_rest = {{"dropout", nullptr}, {"unk_token", nullptr},   {"continuing_subword_prefix", nullptr},
                     {"fuse_unk", false},  {"byte_fallback", false}, {"end_of_word_suffix", nullptr}};
  return file;
}

}  // namespace

Tokenizer train_bpe(const TextSupply& source, const BpeTrainOptions& options, int threads,
                    const std::function<void(const TrainProgress&)>& progress) {
  check(options, threads);
  const auto report = [&](Phase phase, int64_t done, int64_t total) {
    if (progress) progress({phase, done, total});
  };
  const auto pretokenizer = Pretokenizer::from_pattern(options.pattern);
  const auto words = count_words(source, pretokenizer, threads, [&](int64_t bytes) { report(Phase::read, bytes, 0); });
  PRISM_CHECK(words.size() > 0, "train_bpe", "expected text to learn from; found none; name a file that holds some.");

  MergeLearner learner(words, options.special_tokens);
  do report(Phase::merge, learner.size(), options.vocab_size);
  while (learner.size() < options.vocab_size && learner.step(options.min_frequency));
  return Tokenizer::from_json(write_tokenizer_file(make_file(learner, options)), "trained tokenizer");
}

}  // namespace prism
