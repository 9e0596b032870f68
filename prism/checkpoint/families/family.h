// The published model families that prism reads and writes: one row each.
//
//   const Family& family = find_family("qwen2", "config.json");
//   ModelConfig config = read_config(family, members);
//
// To add a family that differs from Llama in fields of a layer, add a row in family.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "prism/checkpoint/families/members.h"
#include "prism/models/model_config.h"

namespace prism {

/// A family: Llama, with what its members are called, what they are if left out, and what it has beside them.
struct Family {
  const char *model_type, *architecture;  ///< in config.json
  const char* gguf;                       ///< general.architecture in GGUF
  bool gguf_pairs_neighbours = false;     ///< GGUF holds the rows of W_Q and W_K for rotation of neighbouring features
  int64_t gguf_unturned = 0;              ///< in GGUF every gguf_unturned-th layer has no rotation; 0: all have it
  bool gguf_biases = false;               ///< llama.cpp reads biases of W_O and of the feed-forward part
  bool gguf_factors = false;              ///< llama.cpp reads divisors of the rotary angles
  bool gguf_square = false;               ///< llama.cpp reads heads whose widths add up to hidden_size only
  double rotary_base = 10000;
  int64_t kv_heads = 0;  ///< 0: as many as heads
  int64_t head_dim = 0;  ///< 0: hidden_size / heads
  bool tied = false;
  /// Reads the members beside the common ones; `config` has its layers.
  void (*read)(const MemberReader& members, ModelConfig& config) = nullptr;
  void (*write)(const ModelConfig& config, Json& json) = nullptr;
};

/// All families, in the order in which one is chosen for saving.
std::span<const Family> families();

/// The model_types that config.json may have, e.g. "llama, mistral or prism".
std::string names_of_families();

/// The family of a model_type, or null.
const Family* find_family(const std::string& model_type);

/// The config of a model in transformers' names; its layers are complete but for defaults.
/// @throws InputError for members that are missing, of the wrong type, or have a value that prism does not support.
ModelConfig read_config(const Family& family, const MemberReader& members);

/// The members that describe the model, or std::nullopt if the family cannot express it: reading them back would not
/// give the same config.
std::optional<Json> write_config(const Family& family, const ModelConfig& config);

/// The members that hold for the whole model, without layers. @param tied  tie_word_embeddings where it is left out.
ModelConfig read_sizes(const MemberReader& members, bool tied = false);
/// The members that describe a layer of a Llama, but for its biases.
LayerConfig read_layer(const Family& family, const MemberReader& members);
/// num_hidden_layers. @throws InputError for a number that is out of range.
size_t read_layer_count(const MemberReader& members);
/// A number of layers. @param name  what a file calls it. @param operation, source  for the message.
/// @throws InputError for a number that is not within 1-4096.
size_t layer_count(int64_t layers, const char* name, const std::string& source, const char* operation);

}  // namespace prism
