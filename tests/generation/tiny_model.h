// Small models and a small tokenizer, made in memory.
#pragma once

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "prism/core/fields.h"
#include "prism/layers/packed_weight.h"
#include "prism/models/decoder.h"
#include "prism/tokenizer/byte_alphabet.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// Ids 0-255 are the bytes, 256 is "th", 257 " th", 258 <|endoftext|> if `end_of_text`. Without `merges` texts are
/// bytes.
inline Tokenizer tiny_tokenizer(bool end_of_text = true, bool merges = true) {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[byte_character(static_cast<uint8_t>(byte))] = byte;
  vocab["th"] = 256;
  vocab["\u0120th"] = 257;  // U+0120 spells a space
  Json added = Json::array();
  if (end_of_text) {
    added.push_back({{"id", 258},
                     {"content", "<|endoftext|>"},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json rules = merges ? Json{"t h", "\u0120 th"} : Json::array();
  const Json json = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", rules}}}};
  return Tokenizer::from_json(json.dump(), "tiny tokenizer");
}

constexpr int64_t kTinyVocab = 259;

inline Decoder make_decoder(ModelConfig config) {
  at::set_num_threads(1);  // products this small are faster on one thread
  expand_shorthand(config);
  complete(config);
  Decoder decoder(config);
  decoder->initialise(3);
  return decoder;
}

/// Random weights, large enough for distinct logits. Layers have different head counts and shared key/value heads.
/// @param middle_heads  4, of width 12, which flash attention does not serve; or 3, of width 16.
inline Decoder tiny_decoder(int64_t context = 64, int64_t vocab_size = kTinyVocab, int64_t middle_heads = 4) {
  ModelConfig config;
  config.vocab_size = vocab_size;
  config.d_model = 48;
  config.context = context;
  config.schedule = fmt::format("2x1,{}x1,6x1", middle_heads);
  config.kv_schedule = fmt::format("1x1,{}x1,2x1", middle_heads);
  config.ffn_width = 40;
  config.init_std = 0.3;
  return make_decoder(config);
}

/// A decoder with frozen weights, or one with values where this processor has no kernels for them. All of its heads are
/// served by flash attention, since LibTorch's sums in another order in another batch.
inline Decoder frozen_decoder(int64_t context) {
  auto decoder = tiny_decoder(context, kTinyVocab, /*middle_heads=*/3);
  if (const auto type = PackedWeight::prompt_type()) {
    decoder->set_compute_type(*type);
    decoder->freeze();
  }
  return decoder;
}

/// A decoder like tiny_decoder()'s with three equal layers that have head budgets.
inline Decoder tiny_budget_decoder(const std::string& kind, int64_t context) {
  ModelConfig config;
  config.vocab_size = kTinyVocab;
  config.d_model = 48;
  config.context = context;
  config.schedule = "6x3";
  config.ffn_width = 40;
  config.init_std = 0.3;
  config.each.budget.kind = kind;
  config.each.budget.share = kind == "learned" ? 1 : 0.5;
  return make_decoder(config);
}

/// A model that predicts each token's successor by the token alone: `next` by id, else the token itself.
inline Decoder chain_decoder(const std::map<int32_t, int32_t>& next, int64_t context = 64) {
  ModelConfig config;
  config.vocab_size = kTinyVocab;
  config.d_model = 260;
  config.context = context;
  config.tied = false;
  config.schedule = "1x1";
  config.ffn_width = 2;
  Decoder decoder = make_decoder(config);
  const torch::NoGradGuard no_gradients;
  for (const auto& entry : decoder->weights())
    if (entry.weight.tensor().dim() == 2) entry.weight.tensor().zero_();
  // The layers add nothing, so the head reads the embedding of the last token.
  for (int32_t id = 0; id < kTinyVocab; ++id) {
    const auto row = next.find(id);
    decoder->embedding.weight.tensor()[id][id].fill_(1.0);
    decoder->head.weight().tensor()[row == next.end() ? id : row->second][id].fill_(1.0);
  }
  return decoder;
}

}  // namespace prism
