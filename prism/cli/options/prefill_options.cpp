#include "prism/cli/options/prefill_options.h"

#include <fmt/format.h>

#include "prism/bench/prefill_cost.h"
#include "prism/cli/command.h"
#include "prism/cli/options/field_options.h"
#include "prism/core/console.h"
#include "prism/core/text/field_names.h"
#include "prism/sparse/selectors.h"

namespace prism {
namespace {

Json layer_to_json(const LayerPrefill& layer) {
  Json json = statistics_to_json(layer.all_heads());
  json["select_ms"] = 1e3 * layer.select_seconds;
  json["attend_ms"] = 1e3 * layer.attend_seconds;
  return json;
}

}  // namespace

Json settings_from_sets(const std::string& selector, const std::vector<std::string>& sets, const std::string& operation,
                        const char* option) {
  const auto words = overrides_from_sets(sets, operation, {option, "NAME=VALUE", "p=0.9"});
  auto settings = selector_settings(selector, {});  // reports an unknown selector
  if (words.empty()) return settings;
  return naming_field(option, [&] { return selector_settings(selector, words); });
}

void add_prefill_flags(CLI::App& app, PrefillFlags& flags, bool measures_recall) {
  add_fields(app, flags.options, {{"selector", "prefill"}, {"settings", ""}, {"chunk", "prefill-chunk"}});
  if (measures_recall) add_fields(app, flags.meter, {{"recall_rows", "prefill-recall"}});
  app.add_option("--prefill-set", flags.sets,
                 "NAME=VALUE: change a setting of the selector (see prism attend --help); may be repeated")
      ->allow_extra_args(false);
}

void complete_prefill(PrefillFlags& flags) {
  PRISM_CHECK(flags.sets.empty() || flags.options.selector != PrefillOptions().selector, "prefill",
              "expected --prefill SELECTOR with --prefill-set {}; found none; add it or leave --prefill-set out.",
              flags.sets.front());
  PRISM_CHECK(flags.meter.recall_rows == 0 || flags.options.selector != PrefillOptions().selector, "prefill",
              "expected --prefill SELECTOR with --prefill-recall; found none; add it or leave --prefill-recall out.");
  flags.options.settings = settings_from_sets(flags.options.selector, flags.sets, "prefill", "--prefill-set");
  const Prefill checked(flags.options);
  const PrefillMeter checked_too(flags.meter);
}

void refuse_recall(const PrefillFlags& flags, const char* operation) {
  PRISM_CHECK(flags.meter.recall_rows == 0, operation,
              "expected no --prefill-recall, which is not measured here; found {}; leave it out.",
              flags.meter.recall_rows);
}

std::vector<PrefillShape> cost_shapes(const PrefillOptions& options, Decoder decoder) {
  std::vector<PrefillShape> shapes;
  if (!decoder->device().is_cpu()) return shapes;
  for (const auto& layer : decoder->config().layers) {
    const auto shape = cost_shape(options.selector, options.settings, decoder->compute_type(), layer.head_dim);
    if (shape && layer.rotary.turns()) shapes.push_back(*shape);
  }
  return shapes;
}

PrefillCosts costs_on_this_machine(const std::vector<PrefillShape>& shapes) {
  const auto machine = machine_prefill_costs(shapes, [](const PrefillShape& shape) {
    tell("note: auto measures the costs of attention with heads {} wide on this machine, once\n", shape.head_dim);
    return measure_prefill_cost(shape);
  });
  if (!machine.note.empty()) say_notes({machine.note});
  return machine.costs;
}

void say_notes(const std::vector<std::string>& notes) {
  for (const auto& note : notes) tell("note: {}\n", note);
}

Json statistics_to_json(const HeadStatistics& heads) {
  Json json = {{"density", heads.density()}};
  if (heads.has_recall()) {
    json["recall"] = heads.recall();
    json["recall_p5"] = heads.recall_quantile(0.05);
    json["least_recall"] = heads.recall_quantile(0);
    json["oracle_density"] = heads.oracle_density();
  }
  return json;
}

Json prefill_to_json(const PrefillOptions& options, const std::vector<LayerPrefill>& layers) {
  Json json = {{"selector", options.selector}, {"settings", options.settings}, {"chunk", options.chunk}};
  if (layers.empty()) {
    json["density"] = 1;  // nothing was metered, and nothing left out
  } else {
    json.update(layer_to_json(all_layers(layers)));
  }
  if (options.selector == PrefillOptions().selector) return json;  // dense: every head keeps everything
  json["layers"] = Json::array();
  for (const auto& layer : layers) {
    Json row = layer_to_json(layer);
    row["heads"] = Json::array();
    for (const auto& head : layer.heads) row["heads"].push_back(statistics_to_json(head));
    json["layers"].push_back(std::move(row));
  }
  return json;
}

std::string prefill_text(const PrefillOptions& options, const std::vector<LayerPrefill>& layers) {
  const auto all = all_layers(layers);
  const auto heads = all.all_heads();
  std::string text = fmt::format("{}, density {:.3f}", options.selector, heads.density());
  if (heads.has_recall())
    text += fmt::format(", recall {:.4f} (least {:.4f})", heads.recall(), heads.recall_quantile(0));
  return text +
         fmt::format("; {:.1f} ms to select, {:.1f} ms to attend", 1e3 * all.select_seconds, 1e3 * all.attend_seconds);
}

}  // namespace prism
