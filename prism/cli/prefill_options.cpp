#include "prism/cli/prefill_options.h"

#include <fmt/format.h>

#include "prism/cli/command.h"

namespace prism {
namespace {

Json layer_to_json(const LayerPrefill& layer) {
  Json json = statistics_to_json(layer.all_heads());
  json["select_ms"] = 1e3 * layer.select_seconds;
  json["attend_ms"] = 1e3 * layer.attend_seconds;
  return json;
}

}  // namespace

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

FlagNames prefill_flags(FlagNames others) {
  others.merge(FlagNames{
      {"selector", "prefill"}, {"settings", ""}, {"chunk", "prefill-chunk"}, {"recall_rows", "prefill-recall"}});
  return others;
}

void add_prefill_set_option(CLI::App& app, std::vector<std::string>& sets) {
  app.add_option("--prefill-set", sets, "NAME=VALUE: one of the selector's settings, see prism attend --help")
      ->allow_extra_args(false);
}

Json prefill_settings(const std::string& selector, const std::vector<std::string>& sets) {
  return selector_settings(selector, overrides_from_sets(sets, "prefill"));
}

Json prefill_to_json(const PrefillOptions& options, const std::vector<LayerPrefill>& layers) {
  Json json = {{"selector", options.selector}, {"settings", options.settings}, {"chunk", options.chunk}};
  json.update(layer_to_json(all_layers(layers)));
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
