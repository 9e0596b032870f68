#include "prism/analysis/arms.h"

#include <algorithm>
#include <utility>

#include "prism/attention/head_schedule.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"

namespace prism {
namespace {

/// Checks that the layers of `model` can be compared with those of `first`.
void check_alike(const ArmModel& model, const ArmModel& first) {
  PRISM_CHECK(
      model.config.layers.size() == first.config.layers.size(), "analyse",
      "expected models with the same number of layers; found {} in {} and {} in {}; compare models of equal depth.",
      first.config.layers.size(), first.name, model.config.layers.size(), model.name);
  PRISM_CHECK(model.tokenizer == first.tokenizer, "analyse",
              "expected models with the same tokenizer, because distances count its tokens; found {} in {} and {} in "
              "{}; compare models trained on the same shards.",
              first.tokenizer, first.name, model.tokenizer, model.name);
}

void check_one_arm(const std::vector<ArmModel>& arm) {
  for (const auto& model : arm) {
    const auto schedule = heads_of(model.config), expected = heads_of(arm.front().config);
    PRISM_CHECK(
        schedule == expected, "analyse",
        "expected all models of an arm to have the same head schedule; found {} in {} and {} in {}; name one of them "
        "with --against.",
        format_head_schedule(expected), arm.front().name, format_head_schedule(schedule), model.name);
  }
}

bool can_pair_seeds(const Arms& arms) {
  const auto all = arms.all();
  return arms.models.size() == arms.against.size() && arms.models.size() > 1 &&
         std::all_of(all.begin(), all.end(), [](const ArmModel* model) { return model->seed.has_value(); });
}

/// `against` in the order of the seeds of `models`.
std::vector<ArmModel> paired_with(const std::vector<ArmModel>& models, std::vector<ArmModel> against) {
  std::vector<ArmModel> paired;
  for (const auto& model : models) {
    const auto other = std::find_if(against.begin(), against.end(),
                                    [&](const ArmModel& candidate) { return candidate.seed == model.seed; });
    PRISM_CHECK(
        other != against.end(), "analyse",
        "expected the same seeds on both sides, because differences are paired by seed; found seed {} of {} "
        "on one side only; name runs of the same seeds, or a different number of runs on each side, so that they "
        "are not paired.",
        *model.seed, model.name);
    paired.push_back(std::move(*other));
    against.erase(other);
  }
  return paired;
}

}  // namespace

std::vector<const ArmModel*> Arms::all() const {
  std::vector<const ArmModel*> list;
  for (const auto* arm : {&models, &against})
    for (const auto& model : *arm) list.push_back(&model);
  return list;
}

Arms pair_arms(std::vector<ArmModel> models, std::vector<ArmModel> against) {
  PRISM_CHECK(!models.empty(), "analyse", "expected models of an arm; found none; name a model.");
  Arms arms{std::move(models), std::move(against)};
  for (const auto* model : arms.all()) check_alike(*model, arms.models.front());
  check_one_arm(arms.models);
  check_one_arm(arms.against);
  if (can_pair_seeds(arms)) arms.against = paired_with(arms.models, std::move(arms.against));
  return arms;
}

int64_t shared_context(const Arms& arms, int64_t wanted) {
  const int64_t context = wanted == 0 ? arms.models.front().config.context : wanted;
  for (const auto* model : arms.all()) {
    PRISM_CHECK(wanted != 0 || model->config.context == context, "analyse",
                "expected models with the same context; found {} in {} and {} in {}; choose one for all with "
                "--tokens.",
                context, arms.models.front().name, model->config.context, model->name);
    PRISM_CHECK(context >= 1 && context <= model->config.context, "analyse",
                "--tokens: expected 1 to {} tokens, the context of {}; found {}; choose fewer.", model->config.context,
                model->name, context);
  }
  return context;
}

bool shared_document_mask(const Arms& arms) {
  const auto& first = arms.models.front();
  for (const auto* model : arms.all())
    PRISM_CHECK(model->document_mask == first.document_mask, "analyse",
                "expected models trained with the same data.document_mask; found {} with and {} without it; give "
                "--document-mask or --no-document-mask.",
                first.document_mask ? first.name : model->name, first.document_mask ? model->name : first.name);
  return first.document_mask;
}

ArmDistances measure_distances(const Arms& arms, const std::function<Decoder(const std::string&)>& load,
                               const WindowLoader& windows, int64_t sequences) {
  sequences = std::min(sequences, windows.windows_per_epoch());
  Progress progress("attention-distance", sequences * static_cast<int64_t>(arms.all().size()), " sequences");
  int64_t done = 0;
  const auto measure = [&](const std::vector<ArmModel>& arm) {
    std::vector<AttentionDistance> results;
    for (const auto& model : arm) {
      const auto result = measure_attention_distance(load(model.name), windows, sequences,
                                                     [&](int64_t count) { progress.update(done + count, model.name); });
      if (!result) throw FailedError("analyse", "stopped by a signal; no distance was computed.");
      done += sequences;
      results.push_back(*result);
    }
    return results;
  };
  auto models = measure(arms.models);
  return {std::move(models), measure(arms.against)};
}

}  // namespace prism
