// A tokenizer without merges, for tests of data.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "prism/core/json.h"
#include "prism/tokenizer/byte_alphabet.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

constexpr int32_t kEnd = 256;

/// A tokenizer with one id per byte, in the order of the alphabet, with GPT-2's pattern. With `end_of_text`, 256 ends a
/// text.
inline Tokenizer byte_tokenizer(bool end_of_text = true) {
  Json vocabulary = Json::object();
  int id = 0;
  for (const uint8_t byte : bytes_in_alphabet_order()) vocabulary[byte_character(byte)] = id++;
  Json added = Json::array();
  if (end_of_text) {
    added.push_back({{"id", kEnd},
                     {"content", "<|endoftext|>"},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const Json json = {
      {"version", "1.0"},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  return Tokenizer::from_json(json.dump(), "test tokenizer");
}

}  // namespace prism
