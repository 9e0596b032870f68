#include "prism/training/objective/objective.h"

#include "prism/checkpoint/model_folder.h"
#include "prism/core/error.h"
#include "prism/layers/initialise.h"
#include "prism/training/objective/classification.h"
#include "prism/training/objective/language_modelling.h"
#include "prism/training/objective/vocabulary.h"

namespace prism {

int64_t Objective::parameters() const {
  return inference_parameters(weights());
}

int64_t Objective::flops_per_token() const {
  int64_t flops = 0;
  for (const auto& entry : weights()) flops += 2 * entry.weight.numel() * entry.products();
  return flops;
}

void Objective::initialise(const Recipe& recipe) {
  if (recipe.init.empty()) {
    prism::initialise(weights(), initialisation_of(recipe.model), static_cast<uint64_t>(recipe.seed));
    if (!recipe.init_embedding.empty())
      load_embedding(weights(), find_model_folder(recipe.init_embedding), tokenizer());
    return;
  }
  const auto folder = find_model_folder(recipe.init);
  check_model_tokenizer(folder, tokenizer(), "init");
  open_weights(folder);  // a missing file is reported as such, not as a mismatch of shapes
  try {
    load(folder);
  } catch (const InputError& error) {
    throw InputError("train",
                     fmt::format("init: expected weights that fit the recipe's model; found a mismatch ({}); change "
                                 "the recipe: heads may differ, but not d_model, layers, kinds, widths and biases of "
                                 "feed-forward parts, the total width of all heads or of all key/value heads, norms of "
                                 "queries and keys, or head budgets.",
                                 error.reason()));
  }
}

void Objective::save(const std::filesystem::path& folder) const {
  save_weights(folder, weights());
}

void Objective::load(const std::filesystem::path& folder) {
  load_weights(weights(), folder);
}

std::unique_ptr<Objective> make_objective(const Recipe& recipe) {
  if (unit_of(recipe) == TrainingUnit::examples) return std::make_unique<Classification>();
  return std::make_unique<LanguageModelling>();
}

}  // namespace prism
