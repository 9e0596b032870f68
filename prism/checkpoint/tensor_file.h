// Reads and writes torch tensors in safetensors files.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "prism/formats/safetensors.h"
#include "prism/layers/named_tensor.h"

namespace prism {

/// Writes the tensors in the given order, each in its dtype. Atomic.
void write_tensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

/// One tensor of a file, in its dtype. @throws InputError for an unknown name or an unsupported type.
torch::Tensor read_tensor(const SafetensorsReader& reader, const std::string& name);

/// Copies a file's tensors into `targets` and converts dtypes where they differ.
/// @throws InputError for a tensor that is missing, unexpected or of the wrong shape, or for floating-point values
///         where integers are expected and the reverse.
void read_tensors(const SafetensorsReader& reader, const std::vector<NamedTensor>& targets);

}  // namespace prism
