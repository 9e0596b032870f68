#include "prism/training/objective.h"

#include "prism/checkpoint/model_folder.h"
#include "prism/checkpoint/weight_map.h"
#include "prism/layers/initialise.h"
#include "prism/training/language_modelling.h"

namespace prism {
namespace {

constexpr const char* kWeightsName = "model.safetensors";

}  // namespace

int64_t Objective::flops_per_token() const {
  int64_t flops = 0;
  for (const auto& entry : weights()) flops += 2 * entry.weight.numel() * entry.products();
  return flops;
}

void Objective::initialise(const Recipe& recipe) {
  if (!recipe.init.empty()) return load(find_model_folder(recipe.init));
  prism::initialise(weights(),
                    {.scheme = recipe.model.initialisation,
                     .std = recipe.model.init_std,
                     .layers = recipe.model.layers.size(),
                     .d_model = recipe.model.d_model},
                    static_cast<uint64_t>(recipe.seed));
}

void Objective::save(const std::filesystem::path& folder) const {
  write_tensors(folder / kWeightsName, file_tensors(weights()));
}

void Objective::load(const std::filesystem::path& folder) {
  read_tensors(SafetensorsReader(folder / kWeightsName), file_tensors(weights()));
}

std::unique_ptr<Objective> make_objective(const Recipe&) {
  return std::make_unique<LanguageModelling>();
}

}  // namespace prism
