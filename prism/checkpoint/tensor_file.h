// Writes torch tensors into safetensors files, and reads them from files of any format.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prism/core/numbers/block_type.h"
#include "prism/formats/safetensors.h"
#include "prism/layers/named_tensor.h"

namespace prism {

/// Writes the tensors in the given order, each in its dtype. Atomic.
void write_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                   std::map<std::string, std::string> metadata = {});

/// One tensor of a file, in its dtype. @throws InputError for an unknown name or an unsupported type.
torch::Tensor read_tensor(const SafetensorsReader& reader, const std::string& name);

/// A matrix in blocks of some type.
struct StoredBlocks {
  BlockType type = BlockType::bf16;
  int64_t rows = 0, columns = 0;
  torch::Tensor bytes;  ///< uint8 [rows, bytes of a row], valid as long as the source
};

/// Named tensors in one or several files of some format.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  /// All names, in the order of the files.
  virtual std::vector<std::string> names() const = 0;
  /// One tensor, in its dtype; from a GGUF file in float32. @throws InputError for an unknown name or a type that torch
  /// lacks.
  virtual torch::Tensor read(const std::string& name) const = 0;
  /// One matrix as the file stores it, if that is in blocks that products take as they are (packed::can_pack()).
  virtual std::optional<StoredBlocks> read_blocks(const std::string&) const { return std::nullopt; }
  /// ggml's name of the type that a tensor is stored in, e.g. "Q6_K", if bfloat16 rounds its values; else empty.
  virtual std::string rounded_type(const std::string&) const { return {}; }
  /// What messages call the source: the file, or the index of several.
  virtual std::string path() const = 0;
  /// @throws InputError if a file was cut short after it was opened.
  virtual void check_whole() const = 0;
};

/// One safetensors file, or those that an index (model.safetensors.index.json) lists.
class SafetensorsSource : public TensorSource {
 public:
  /// @throws InputError for a damaged file, or an index that names files outside its folder or tensors that the named
  ///         file lacks.
  explicit SafetensorsSource(const std::filesystem::path& file_or_index);

  std::vector<std::string> names() const override;
  torch::Tensor read(const std::string& name) const override;
  std::optional<StoredBlocks> read_blocks(const std::string& name) const override;
  std::string path() const override { return path_.string(); }
  void check_whole() const override;

 private:
  std::filesystem::path path_;
  std::vector<SafetensorsReader> files_;
  std::map<std::string, size_t> file_of_;  ///< by name of the tensor
};

/// Copies a source's tensors into `targets` and converts dtypes where they differ.
/// @param ignores  whether a tensor that no target asks for may be there; none may by default.
/// @throws InputError for a tensor that is missing, unexpected or of the wrong shape, or for floating-point values
///         where integers are expected and the reverse.
void read_tensors(const TensorSource& source, const std::vector<NamedTensor>& targets,
                  const std::function<bool(const std::string&)>& ignores = {});
/// @throws InputError if a tensor of a source has another shape than its model's.
void check_shape(const TensorSource& source, const std::string& name, torch::IntArrayRef expected,
                 torch::IntArrayRef found);

}  // namespace prism
