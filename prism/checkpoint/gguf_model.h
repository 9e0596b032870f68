// Models in GGUF files: the config out of the metadata, and the weights under the names of model folders.
//
//   const ModelConfig config = config_from_gguf(GgufReader("model.gguf"));
//   read_tensors(GgufSource("model.gguf"), file_tensors(decoder->weights()));
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "prism/checkpoint/tensor_file.h"
#include "prism/formats/gguf.h"
#include "prism/models/model_config.h"

namespace prism {

/// Returns true for an existing file whose name ends in .gguf.
bool is_gguf(const std::filesystem::path& path);

/// The complete config of a file's model. Biases, norms of queries and keys and a head of its own are there if the file
/// has their tensors.
/// @throws InputError for an architecture that no family has, metadata that are missing or out of range, experts, and
///         heads that turn only in part.
ModelConfig config_from_gguf(const GgufReader& reader);

/// The tensors of a GGUF file as those of a model folder, in float32: with transformers' names, and with the rows of
/// W_Q and W_K in the order for pairs (j, j + D/2).
class GgufSource : public TensorSource {
 public:
  /// @throws InputError as GgufReader and config_from_gguf(), and for a tensor whose name the family does not have.
  explicit GgufSource(const std::filesystem::path& path);

  std::vector<std::string> names() const override { return names_; }
  torch::Tensor read(const std::string& name) const override;
  std::string path() const override { return reader_.path().string(); }
  void check_whole() const override { reader_.check_whole(); }

 private:
  struct Stored {
    const GgufTensor* tensor = nullptr;
    int64_t reordered_heads = 0;  ///< heads whose rows are to be sorted; 0: none
  };

  GgufReader reader_;
  std::vector<std::string> names_;
  std::map<std::string, Stored> stored_;
};

}  // namespace prism
