#include "prism/checkpoint/frozen_weights.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/names.h"

namespace prism {
namespace {

/// The tensors of one weight as they are to be packed.
class WeightParts {
 public:
  /// Reads blocks alone. @throws InputError for blocks of another shape.
  WeightParts(const WeightEntry& entry, const TensorSource& source, WeightStorage storage)
      : entry_(entry), source_(source) {
    for (const auto& tensor : entry.tensors) {
      auto blocks = source.read_blocks(tensor.name);
      if (blocks)
        check_shape(source, tensor.name, {tensor.rows, entry.weight.shape()[1]}, {blocks->rows, blocks->columns});
      const bool keeps = blocks && (storage == WeightStorage::file || blocks->type == BlockType::bf16) &&
                         (blocks->type == BlockType::bf16 || blocks->columns % packed::kBlock == 0);
      stored_.push_back(keeps ? std::move(blocks) : std::nullopt);
    }
  }

  /// Returns true if all tensors can be packed without a loss.
  bool are_stored() const {
    return std::all_of(stored_.begin(), stored_.end(), [](const auto& blocks) { return blocks.has_value(); });
  }

  /// The types of the tensors that are rounded to bfloat16.
  std::vector<std::string> converted() const {
    std::vector<std::string> types;
    for (size_t i = 0; i < stored_.size(); ++i) {
      auto type = stored_[i] ? std::string() : source_.rounded_type(entry_.tensors[i].name);
      if (!type.empty()) types.push_back(std::move(type));
    }
    return types;
  }

  PackedWeight pack() const {
    const int64_t columns = entry_.weight.shape()[1];
    std::vector<PackedWeight::Part> parts;
    for (size_t i = 0; i < stored_.size(); ++i)
      parts.push_back({stored_[i] ? stored_[i]->type : BlockType::bf16, entry_.tensors[i].rows});
    PackedWeight packed(columns, parts);
    for (size_t i = 0; i < stored_.size(); ++i) {
      const auto& tensor = entry_.tensors[i];
      if (!stored_[i]) {
        const auto values = source_.read(tensor.name);
        check_shape(source_, tensor.name, {tensor.rows, columns}, values.sizes());
        packed.set_rows(tensor.first_row, values);
        continue;
      }
      packed.set_blocks(tensor.first_row, stored_[i]->bytes);
    }
    return packed;
  }

 private:
  const WeightEntry& entry_;
  const TensorSource& source_;
  std::vector<std::optional<StoredBlocks>> stored_;
};

}  // namespace

WeightStorage find_weight_storage(const std::string& name) {
  static const std::map<std::string, WeightStorage> storages = {{"file", WeightStorage::file},
                                                                {"bfloat16", WeightStorage::bfloat16},
                                                                {"bf16", WeightStorage::bfloat16},
                                                                {"float32", WeightStorage::float32},
                                                                {"f32", WeightStorage::float32}};
  return find_by_name(storages, name, "weights", "storage");
}

FrozenWeights read_frozen(const Trunk& model, const TensorSource& source, WeightStorage storage) {
  FrozenWeights result;
  const bool freezes = storage != WeightStorage::float32 && model.compute_type() == PackedWeight::prompt_type();
  for (const auto& entry : model.weights()) {
    const bool is_whole = storage == WeightStorage::bfloat16 || model.compute_type() == torch::kBFloat16;
    if (!freezes || !model.freezes(entry)) {
      result.left.push_back(entry);
      continue;
    }
    const WeightParts parts(entry, source, storage);
    if (!is_whole && !parts.are_stored()) {
      result.left.push_back(entry);
      continue;
    }
    entry.weight.freeze(parts.pack());
    for (const auto& tensor : entry.tensors) result.read.push_back(tensor.name);
    for (const auto& type : parts.converted()) ++result.converted[type];
  }
  return result;
}

}  // namespace prism
