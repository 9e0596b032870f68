// The checks of a recipe.
#include <algorithm>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/field_names.h"
#include "prism/kernels/compute_type.h"
#include "prism/training/recipe.h"

namespace prism {
namespace {

/// Checks the range of every field.
void check_ranges(const TrainOptions& options) {
  naming_field("train.dtype", [&] { find_compute_type(options.dtype); });
  check(options.optimizer_options);
  check(options.budget);
  naming_field("train.lr_schedule", [&] { check_learning_rate_schedule(options.lr_schedule); });
  const auto at_least = [](const char* name, double value, double least) {
    PRISM_CHECK(value >= least, "recipe", "train.{}: expected at least {}; found {}; raise it.", name, least, value);
  };
  at_least("batch_rows", static_cast<double>(options.batch_rows), 1);
  at_least("accumulate", static_cast<double>(options.accumulate), 1);
  at_least("log_steps", static_cast<double>(options.log_steps), 1);
  at_least("diagnose_steps", static_cast<double>(options.diagnose_steps), 0);
  at_least("keep_last", static_cast<double>(options.keep_last), 1);
  at_least("learning_rate", options.learning_rate, 0);
  at_least("z_loss", options.z_loss, 0);
  at_least("skip_weight", options.skip_weight, 0);
  at_least("warmup_tokens", static_cast<double>(options.warmup_tokens), 0);
  at_least("eval_every_tokens", static_cast<double>(options.eval_every_tokens), 0);
  at_least("eval_every_epochs", options.eval_every_epochs, 0);
  at_least("eval_tokens", static_cast<double>(options.eval_tokens), 0);
  at_least("checkpoint_every_tokens", static_cast<double>(options.checkpoint_every_tokens), 0);
  at_least("checkpoint_every_epochs", options.checkpoint_every_epochs, 0);
  at_least("sample_tokens", static_cast<double>(options.sample_tokens), 1);
  at_least("sample_every_tokens", static_cast<double>(options.sample_every_tokens), 0);
  sample_temperatures(options.sample_temperature);
  for (const auto& [name, value] :
       {std::pair{"tokens", options.tokens}, {"batch_rows", options.batch_rows}, {"accumulate", options.accumulate}})
    // The limits keep the tokens of a step from overflowing.
    if (const int64_t most = int64_t{1} << (name == std::string_view("tokens") ? 50 : 16); value > most)
      throw InputError("recipe", fmt::format("train.{}: expected at most {}; found {}; lower it.", name, most, value));
  for (const auto& [name, value] : {std::pair{"epochs", options.epochs},
                                    {"eval_every_epochs", options.eval_every_epochs},
                                    {"checkpoint_every_epochs", options.checkpoint_every_epochs}})
    PRISM_CHECK(value <= 1e6, "recipe", "train.{}: expected at most 1000000; found {}; lower it.", name, value);
  for (const auto& [name, share] : {std::pair{"final_share", options.final_share},
                                    {"warmup_share", options.warmup_share},
                                    {"decay_share", options.decay_share}})
    PRISM_CHECK(share >= 0 && share <= 1, "recipe", "train.{}: expected a share within 0-1; found {}; change it.", name,
                share);
}

/// Checks that the recipe of a language model has no fields of classifiers.
void check_is_of_language_model(const Recipe& recipe) {
  const TrainOptions& train = recipe.train;
  for (const auto& [name, is_set] : {std::pair{"train.epochs", train.epochs != 0},
                                     {"train.eval_every_epochs", train.eval_every_epochs != 0},
                                     {"train.checkpoint_every_epochs", train.checkpoint_every_epochs != 0},
                                     {"final.test", recipe.final.test},
                                     {"data.fraction", recipe.data.fraction != 1},
                                     {"data.examples", recipe.data.examples != 0}})
    PRISM_CHECK(
        !is_set, "recipe",
        "expected no {}, which only classifiers have; found it in the recipe of a language model; leave it out, "
        "or set model.classes.",
        name);
  PRISM_CHECK(train.tokens >= 1, "recipe", "train.tokens: expected at least 1; found {}; raise it.", train.tokens);
}

/// Checks that the recipe of a classifier has no fields of language models.
void check_is_of_classifier(const Recipe& recipe) {
  const TrainOptions& train = recipe.train;
  PRISM_CHECK(train.tokens == 0, "recipe",
              "expected train.epochs, because a classifier's training counts examples; found train.tokens {}; leave "
              "tokens out.",
              train.tokens);
  for (const auto& [name, is_set] : {std::pair{"train.warmup_tokens", train.warmup_tokens != 0},
                                     {"train.eval_every_tokens", train.eval_every_tokens != 0},
                                     {"train.eval_tokens", train.eval_tokens != 0},
                                     {"train.checkpoint_every_tokens", train.checkpoint_every_tokens != 0},
                                     {"train.sample_every_tokens", train.sample_every_tokens != 0},
                                     {"train.sample_prompts", !train.sample_prompts.empty()},
                                     {"train.z_loss", train.z_loss != 0},
                                     {"train.prompts", train.prompts},
                                     {"data.mixture", !recipe.data.mixture.empty()},
                                     {"data.stride", recipe.data.stride != 0},
                                     {"data.document_mask", recipe.data.document_mask},
                                     {"final.texts", !recipe.final.texts.empty()},
                                     {"final.distance_sequences", recipe.final.distance_sequences != 0}})
    PRISM_CHECK(!is_set, "recipe",
                "expected no {}, which only language models have; found it in the recipe of a classifier "
                "(model.classes {}); leave it out.",
                name, recipe.model.classes);
  PRISM_CHECK(train.epochs > 0, "recipe", "train.epochs: expected a number above 0; found {}; raise it.", train.epochs);
  PRISM_CHECK(recipe.data.fraction > 0 && recipe.data.fraction <= 1, "recipe",
              "data.fraction: expected a share above 0 and at most 1; found {}; change it.", recipe.data.fraction);
  PRISM_CHECK(recipe.data.examples >= 0, "recipe",
              "data.examples: expected a number of examples, or 0 for those of the data; found {}; leave it out.",
              recipe.data.examples);
}

}  // namespace

void check_options(const Recipe& recipe) {
  check_ranges(recipe.train);
  PRISM_CHECK(recipe.model.classes >= 0, "recipe",
              "model.classes: expected a number of classes, or 0 for a language model; found {}; change it.",
              recipe.model.classes);
  PRISM_CHECK(recipe.data.stride >= 0, "recipe", "data.stride: expected at least 0; found {}; raise it.",
              recipe.data.stride);
  PRISM_CHECK(recipe.init.empty() || recipe.init_embedding.empty(), "recipe",
              "expected init or init_embedding; found both; leave one out.");
  for (size_t l = 0; l < recipe.model.layers.size(); ++l) {
    const auto& budget = recipe.model.layers[l].budget;
    PRISM_CHECK(budget.is_on() || equal_fields(budget, BudgetConfig()), "recipe",
                "layer {}: expected no model.budget.share, train_topk or summary with model.budget.kind none, where "
                "they have no "
                "effect; found {}; leave them out, or set the kind.",
                l, fields_to_json(budget).dump());
  }
  PRISM_CHECK(layers_with_budgets(recipe.model) > 0 || equal_fields(recipe.train.budget, BudgetSchedule()), "recipe",
              "expected no train.budget, because no layer has a head budget; found values that are not the defaults; "
              "leave them out, or set model.budget.kind.");
  PRISM_CHECK(recipe.model.skip > 0 || recipe.train.skip_weight == TrainOptions().skip_weight, "recipe",
              "expected no train.skip_weight without model.skip; found {}; leave it out, or set model.skip.",
              recipe.train.skip_weight);
  unit_of(recipe) == TrainingUnit::tokens ? check_is_of_language_model(recipe) : check_is_of_classifier(recipe);
}

void check_training(const Recipe& recipe) {
  check_options(recipe);
  if (unit_of(recipe) == TrainingUnit::examples) {
    PRISM_CHECK(recipe.data.examples == 0 || total_steps(recipe) >= 1, "recipe",
                "expected at least one step (batch_rows x accumulate, {} examples) in train.epochs = {} over {} "
                "training examples; found none; make the batch smaller or raise the epochs.",
                step_size(recipe), recipe.train.epochs, recipe.data.examples);
    return;
  }
  PRISM_CHECK(step_size(recipe) <= std::max(recipe.train.tokens, recipe.model.context), "recipe",
              "expected a step (batch_rows x accumulate x context) of at most train.tokens, {}; found {}; make the "
              "batch smaller.",
              recipe.train.tokens, step_size(recipe));
}

}  // namespace prism
