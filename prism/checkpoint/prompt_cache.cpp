#include "prism/checkpoint/prompt_cache.h"

#include <algorithm>

#include "prism/checkpoint/tensor_file.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/random.h"
#include "prism/core/text/counted.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/simd/isa.h"
#include "prism/sparse/selectors.h"

namespace prism {
namespace {

constexpr const char* kPromptFormat = "prism_prompt_cache";
constexpr const char* kPromptTokens = "tokens";
constexpr const char* kPromptWords = "words";
constexpr const char* kPromptContents = "contents";  // the hash of all tensors

/// The tensors of a layer's pages under their names in the file.
std::vector<std::pair<std::string, torch::Tensor*>> named_tensors(size_t layer, KeyValues& pages, bool has_scales) {
  const auto name = [&](const char* what) { return fmt::format("layers.{}.{}", layer, what); };
  std::vector<std::pair<std::string, torch::Tensor*>> named = {{name("keys"), &pages.k_BGSD},
                                                               {name("values"), &pages.v_BGSE}};
  if (!has_scales) return named;
  named.emplace_back(name("key_scales"), &pages.k_scales_PGS);
  named.emplace_back(name("value_scales"), &pages.v_scales_PGS);
  return named;
}

struct FingerprintPart {
  const char *name, *options;
  bool is_text;  ///< else a hash
};
/// In the order in which they are compared: an option may change later parts, too.
constexpr FingerprintPart kFingerprintParts[] = {{"dtype", "--dtype", true},
                                                 {"cache", "--cache-type", true},
                                                 {"kernels", "instruction set (PRISM_ISA)", true},
                                                 {"prefill", "--prefill and its settings", true},
                                                 {"config", "model, --context and --rope-scaling", false},
                                                 {"tokenizer", "model", true},
                                                 {"weights", "model and --weights", false}};

/// What differs between two ways to read a prompt, as their JSON: "p 0.95 instead of 0.9".
std::string prefill_difference(const std::string& found, const std::string& wanted) {
  const auto expected = fields_from_json<PrefillOptions>(parse_json(wanted, "prefill"), "prefill");
  PrefillOptions other;
  try {
    other = fields_from_json<PrefillOptions>(parse_json(found, "prefill"), "prefill");
  } catch (const InputError&) {
    return "another";  // in a file that prism did not write
  }
  if (other.selector != expected.selector) return fmt::format("{} instead of {}", other.selector, expected.selector);
  const auto settings = settings_difference(other.settings, expected.settings);
  if (!settings.empty()) return settings;
  const auto chunk = [](int64_t tokens) {
    return tokens == 0 ? "the whole prompt" : counted(tokens, "token") + " at once";
  };
  return fmt::format("{} instead of {}", chunk(other.chunk), chunk(expected.chunk));
}

/// The name of an element type in messages and files.
std::string type_name(torch::ScalarType type) {
  switch (type) {
    case torch::kChar:
      return "int8";
    case torch::kInt:
      return "int32";
    case torch::kLong:
      return "int64";
    case torch::kFloat:
    case torch::kBFloat16:
    case torch::kDouble:
      return compute_type_name(type);
    default:  // of a file that prism did not write
      return c10::toString(type);
  }
}

std::span<const std::byte> bytes_of(const torch::Tensor& tensor) {
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

uint64_t hash_of(const std::string& text) {
  return hash_bytes(std::as_bytes(std::span(text)));
}

uint64_t hash_of(const Weight& weight) {
  if (weight.packed() != nullptr) return hash_bytes(weight.packed()->data());
  return hash_bytes(bytes_of(weight.tensor().detach().to(torch::kCPU).contiguous()));
}

std::string hexadecimal(uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

/// What a file holds of a prompt.
std::vector<NamedTensor> tensors_of(CachedPrompt prompt) {
  std::vector<NamedTensor> tensors = {{kPromptTokens, torch::tensor(prompt.tokens, torch::kInt)}};
  if (!prompt.positions.words.empty())
    tensors.push_back({kPromptWords, torch::tensor(prompt.positions.words, torch::kLong)});
  for (size_t i = 0; i < prompt.positions.layers.size(); ++i) {
    auto& pages = prompt.positions.layers[i];
    for (const auto& [name, tensor] : named_tensors(i, pages, pages.is_int8()))
      tensors.push_back({name, tensor->to(torch::kCPU).contiguous()});
  }
  return tensors;
}

/// The hash of all names and values.
std::string contents_of(const std::vector<NamedTensor>& tensors) {
  uint64_t hash = 0;
  for (const auto& [name, tensor] : tensors) hash = mix64(hash + hash_of(name)) ^ hash_bytes(bytes_of(tensor));
  return hexadecimal(hash);
}

/// A tensor of the file, checked. @param type  of its elements.
torch::Tensor read_checked(const SafetensorsReader& reader, const std::string& name, torch::ScalarType type,
                           const std::vector<int64_t>& shape) {
  auto tensor = read_tensor(reader, name);
  PRISM_CHECK(tensor.scalar_type() == type && tensor.sizes() == torch::IntArrayRef(shape), "prompt_cache",
              "{}: expected {} of {} [{}]; found {} [{}]; name another file, or delete this one.",
              reader.path().string(), name, type_name(type), fmt::join(shape, ", "), type_name(tensor.scalar_type()),
              fmt::join(tensor.sizes(), ", "));
  return tensor;
}

}  // namespace

std::map<std::string, std::string> prompt_fingerprint(const DecoderImpl& decoder, const Tokenizer& tokenizer,
                                                      const PrefillOptions& prefill, torch::ScalarType cache_type) {
  uint64_t weights = 0;
  for (const auto& entry : decoder.weights()) weights = mix64(weights + hash_of(entry.name)) ^ hash_of(entry.weight);
  return {{"weights", hexadecimal(weights)},
          {"config", hexadecimal(hash_of(fields_to_json(decoder.config()).dump()))},
          {"tokenizer", tokenizer.fingerprint_text()},
          {"dtype", type_name(decoder.compute_type())},
          {"prefill", fields_to_json(prefill).dump()},
          {"cache", type_name(cache_type)},
          {"kernels", isa_name(current_isa())}};
}

void write_prompt_cache(const std::filesystem::path& file, const CachedPrompt& prompt,
                        const std::map<std::string, std::string>& fingerprint) {
  const auto tensors = tensors_of(prompt);
  auto metadata = fingerprint;
  metadata[kPromptFormat] = "2";
  metadata[kPromptContents] = contents_of(tensors);
  write_tensors(file, tensors, metadata);
}

CachedPrompt read_prompt_cache(const std::filesystem::path& file, const ModelConfig& config,
                               torch::ScalarType cache_type, const std::map<std::string, std::string>& fingerprint) {
  const SafetensorsReader reader(file);
  const auto& metadata = reader.metadata();
  PRISM_CHECK(metadata.contains(kPromptFormat) && metadata.at(kPromptFormat) == "2", "prompt_cache",
              "expected a file that --prompt-cache wrote; found another in {}; name another file.", file.string());
  for (const auto& [name, options, is_text] : kFingerprintParts) {
    const auto found = metadata.find(name);
    const auto& value = fingerprint.at(name);
    if (found != metadata.end() && found->second == value) continue;
    const auto held = is_text && found != metadata.end() ? found->second : "another";
    const bool is_prefill = std::string_view(name) == "prefill";
    throw InputError(
        "prompt_cache",
        fmt::format(
            "{}: expected a prompt that was read with the same {}{}; found {}; give the {} that wrote the file, or "
            "name another file.",
            file.string(), name, is_text && !is_prefill ? ", " + value : "",
            is_prefill ? prefill_difference(held, value) : held, options));
  }
  const auto shape = reader.find(kPromptTokens).shape;
  PRISM_CHECK(shape.size() == 1 && shape[0] >= 1 && shape[0] <= config.context, "prompt_cache",
              "{}: expected 1 to {} tokens; found {}; name another file, or delete this one.", file.string(),
              config.context, c10::str(shape));
  const int64_t length = shape[0], pages = KvCache::pages_for(length);
  const auto tokens = read_checked(reader, kPromptTokens, torch::kInt, {length});
  const auto* token = tokens.const_data_ptr<int32_t>();
  CachedPrompt prompt{{token, token + length}, {.length = length, .layers = {}, .words = {}}};
  if (has_word_positions(config)) {
    const auto words = read_checked(reader, kPromptWords, torch::kLong, {length});
    PRISM_CHECK(
        words.ge(0).logical_and(words.le(torch::arange(length))).all().item<bool>(), "prompt_cache",
        "{}: expected positions in words of at least 0 and at most the token's own; found {} to {}; name another "
        "file, or delete this one.",
        file.string(), words.min().item<int64_t>(), words.max().item<int64_t>());
    prompt.positions.words.assign(words.const_data_ptr<int64_t>(), words.const_data_ptr<int64_t>() + length);
  }
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const std::vector<int64_t> rows = {pages, config.layers[i].kv_heads, KvCache::kPage};
    auto of_values = rows;
    of_values.push_back(config.layers[i].head_dim);
    auto& layer = prompt.positions.layers.emplace_back();
    for (const auto& [name, tensor] : named_tensors(i, layer, cache_type == torch::kChar)) {
      const bool is_scale = tensor == &layer.k_scales_PGS || tensor == &layer.v_scales_PGS;
      *tensor = read_checked(reader, name, is_scale ? torch::kFloat : cache_type, is_scale ? rows : of_values);
    }
  }
  const auto contents = metadata.find(kPromptContents);
  const auto found = contents_of(tensors_of(prompt));
  PRISM_CHECK(contents != metadata.end() && contents->second == found, "prompt_cache",
              "{}: expected tensors with the hash {}; found {}: the file is damaged; name another file, or delete this "
              "one.",
              file.string(), contents == metadata.end() ? "that the file states" : contents->second, found);
  return prompt;
}

}  // namespace prism
