// Files that keep a prompt that was read: its tokens with their keys and values, as safetensors.
//
//   const auto fingerprint = prompt_fingerprint(*model.decoder, *model.tokenizer, prefill.options(), type);
//   write_prompt_cache("book.cache", {tokens, positions}, fingerprint);
//   const CachedPrompt prompt = read_prompt_cache("book.cache", config, type, fingerprint);
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "prism/attention/kv_cache.h"
#include "prism/attention/prefill.h"
#include "prism/models/decoder.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// What keys and values depend on, by name: the weights, the config with its rotary positions, the tokenizer, the dtype
/// of products, the instruction set of the kernels, how prompts are read, and the dtype of the cache.
std::map<std::string, std::string> prompt_fingerprint(const DecoderImpl& decoder, const Tokenizer& tokenizer,
                                                      const PrefillOptions& prefill, torch::ScalarType cache_type);

/// Atomic.
void write_prompt_cache(const std::filesystem::path& file, const CachedPrompt& prompt,
                        const std::map<std::string, std::string>& fingerprint);

/// @throws InputError for a damaged file, or one that was made with another of the things in the fingerprint.
CachedPrompt read_prompt_cache(const std::filesystem::path& file, const ModelConfig& config,
                               torch::ScalarType cache_type, const std::map<std::string, std::string>& fingerprint);

}  // namespace prism
