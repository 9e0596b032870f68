// Torch tensors in and out of safetensors files.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "prism/formats/safetensors.h"

namespace prism {

/// A tensor under the name it has in a file. Often a view of rows of a fused weight.
struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

/// Writes the tensors in the order given, each in its own dtype; atomic.
void write_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

/// One of a file's tensors, in its own dtype. @throws InputError for a name or a type that there is not.
torch::Tensor read_tensor(const SafetensorsReader& reader, const std::string& name);

/// Copies a file's tensors into `targets`, converting the dtype where it differs.
/// @throws InputError for a tensor that is missing, of another shape, or left over: names, shapes, dtypes, file.
void read_tensors(const SafetensorsReader& reader, const std::vector<NamedTensor>& targets);

}  // namespace prism
