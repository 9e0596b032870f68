// Reads a model's weights for inference: packed, in the types of their file or in bfloat16.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "prism/checkpoint/tensor_file.h"
#include "prism/models/trunk.h"

namespace prism {

/// How the weights of products are stored in memory.
enum class WeightStorage {
  file,      ///< as in the file, if products take its types: BF16, Q8_0, Q4_0, Q4_1, Q5_0 and Q5_1; else bfloat16 where
             ///< products are computed in it, and float32 elsewhere
  bfloat16,  ///< packed bfloat16
  float32,   ///< float32 values, which can be trained, saved and read
};
/// @param name  file, bfloat16 or float32 (bf16 and f32 are accepted). @throws InputError for an unknown name.
WeightStorage find_weight_storage(const std::string& name);

/// Reads and packs the weights that Trunk::freezes() names. Nothing is packed without prism's kernels, or if they
/// compute prompts in another dtype than the model.
/// @return  the other weights, which have still to be read, and the names of the tensors that have been.
struct FrozenWeights {
  std::vector<WeightEntry> left;
  std::vector<std::string> read;
  std::map<std::string, int64_t> converted;  ///< by quantised type: tensors that became bfloat16, because products do
                                             ///< not take the type
};
/// @throws InputError as TensorSource::read(), or for a tensor of another shape.
FrozenWeights read_frozen(const Trunk& model, const TensorSource& source, WeightStorage storage);

}  // namespace prism
