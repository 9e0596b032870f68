#include "prism/cli/recorded_run.h"

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/training/recipe.h"

namespace prism {

Run read_recorded_run(const std::filesystem::path& folder) {
  Run run = read_run(folder);
  if (run.recipe.empty()) return run;
  try {
    run.recipe = recipe_fields(fields_to_json(load_run_recipe(folder)));
  } catch (const InputError&) {
    // A recipe of a later version or another program is shown as it is.
  }
  return run;
}

}  // namespace prism
