#include "prism/sparse/selectors.h"

#include <algorithm>
#include <functional>
#include <map>

#include "prism/core/text/names.h"
#include "prism/sparse/methods/auto_selector.h"
#include "prism/sparse/methods/dense.h"
#include "prism/sparse/methods/flash_prefill.h"
#include "prism/sparse/methods/flex_prefill.h"
#include "prism/sparse/methods/oracle.h"
#include "prism/sparse/methods/pooled/mean_pooling.h"
#include "prism/sparse/methods/pooled/spectral.h"
#include "prism/sparse/methods/random_blocks.h"
#include "prism/sparse/methods/sink_window.h"
#include "prism/sparse/methods/vertical_slash.h"
#include "prism/sparse/methods/xattention.h"

namespace prism {
namespace {

using Words = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kPreset = "preset";
constexpr const char* kChanged = "changed";  ///< replaces a preset's name if some of its settings are changed

/// Named settings. Fields not listed have their defaults.
struct Preset {
  std::string name, help;
  Json settings = Json::object();
};

struct Entry {
  std::string name, help;
  std::vector<Preset> presets;  ///< the first one equals the defaults; empty for methods without a paper
  std::function<std::unique_ptr<Selector>(const Json&, const PrefillCosts&)> make;
  std::function<Json(const Json&, const Words&)> settings;
  std::function<std::vector<FieldDescription>()> fields;
  std::function<BlockSizes(const Json&)> cost_blocks = {};  ///< empty for methods that need no costs
};

template <class Options>
Entry entry(const char* name, const char* help, std::unique_ptr<Selector> (*make)(const Options&),
            std::vector<Preset> presets = {}) {
  return {name,
          help,
          std::move(presets),
          [=](const Json& settings, const PrefillCosts&) { return make(fields_from_json<Options>(settings, name)); },
          [name](const Json& preset, const Words& words) {
            auto options = fields_from_json<Options>(preset, name);
            for (const auto& [field, value] : words) set_field(options, field, value);
            return fields_to_json(options);
          },
          [] { return describe_fields<Options>(); }};
}

Entry auto_entry() {
  constexpr const char* kName = "auto";
  auto made = entry<AutoOptions>(
      kName,
      "spectral where it is faster than dense attention by measured costs, else dense (costs are measured on this "
      "machine in a second or two, once for each width, type, block size, number of threads and instruction set, and "
      "stored as prefill_cost.json in $PRISM_CACHE, else $XDG_CACHE_HOME/prism, else ~/.cache/prism; delete the file "
      "to "
      "measure again)",
      nullptr);
  made.make = [](const Json& settings, const PrefillCosts& costs) {
    return make_auto_selector(fields_from_json<AutoOptions>(settings, kName), costs);
  };
  made.cost_blocks = [](const Json& settings) {
    return fields_from_json<AutoOptions>(settings, kName).spectral.blocks;
  };
  return made;
}

const Json kReferenceSpectral = {
    {"p", 0.95}, {"calibration", "all_blocks"}, {"tail", "padded"}, {"recent", 1}, {"last_dense", 0}};

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {
      entry("spectral",
            "mean queries against mean keys of blocks, separately for fast and slow rotary pairs (the two bands) "
            "(arXiv 2602.08426)",
            make_spectral_selector,
            {{"prism",
              "every row keeps the last four blocks, the last two rows keep all, and the result is the same however a "
              "prompt is cut into chunks of whole blocks"},
             {"official",
              "the settings of the authors' code, calibration=all_blocks, tail=padded, recent=1 and "
              "last_dense=0",
              kReferenceSpectral},
             {"paper", "as official, with the paper's p for Llama-3.1, 0.95 (for Qwen, add p=0.93)",
              kReferenceSpectral}}),
      auto_entry(),
      entry("flash_prefill", "every query against pooled keys (arXiv 2603.06199)", make_flash_prefill_selector,
            {{"official", "the authors' alpha for Qwen3; for Llama-3.1 set alpha=0.18"},
             {"paper", "as official, because arXiv 2602.08426 does not use this method"}}),
      entry("xattention", "sums of query-key products along the antidiagonals of small tiles (arXiv 2503.16428)",
            make_xattention_selector, {{"official", "stride 8, threshold 0.9"}, {"paper", "as official"}}),
      entry("flex_prefill",
            "each head either chooses blocks row by row, or keeps columns and diagonals that the last queries choose "
            "for all "
            "rows (arXiv 2502.20766)",
            make_flex_prefill_selector,
            {{"official", "gamma 0.9, at least 512 keys"},
             {"paper", "gamma 0.95, at least one block", {{"gamma", 0.95}, {"min_budget", 0}}}}),
      entry("vertical_slash", "columns and diagonals, chosen by the last queries (MInference, arXiv 2407.02490)",
            make_vertical_slash_selector,
            {{"official", "the result of the authors' search for nearly all heads of Llama-3.1"},
             {"paper",
              "the values in the code of arXiv 2602.08426, because its text gives none",
              {{"vertical", 512}, {"slash", 2048}}}}),
      entry("mean_pooling", "pooled queries against pooled keys, without bands (arXiv 2602.08426, equation 2)",
            make_mean_pooling_selector,
            {{"paper", "p as for spectral; arXiv 2602.08426 has no results of this method"}}),
      entry("sink_window", "the first and the last blocks (StreamingLLM, arXiv 2309.17453)", make_sink_window_selector,
            {{"prism", "one block of first keys and a window of 1,024"},
             {"official", "4 first keys and a window of 2,000, each rounded up to blocks", {{"window", 16}}}}),
      entry("random", "random blocks", make_random_selector),
      entry("oracle", "blocks by exact attention, as slow as dense attention", make_oracle_selector),
      entry("dense", "all blocks", make_dense_selector)};
  return list;
}

const Entry& find(const std::string& name) {
  std::map<std::string, const Entry*> known;
  for (const auto& each : entries()) known[each.name] = &each;
  const size_t colon = name.find(':');
  PRISM_CHECK(colon == std::string::npos || !known.contains(name.substr(0, colon)), "selector",
              "expected the name of a selector alone; found \"{}\"; give {} without its settings, and each of them as "
              "NAME=VALUE by an option of its own.",
              name, name.substr(0, colon));
  return *find_by_name(known, name, "selector", "selector");
}

const Preset& find_preset(const Entry& entry, const std::string& name) {
  std::map<std::string, const Preset*> known;
  for (const auto& preset : entry.presets) known[preset.name] = &preset;
  return *find_by_name(known, name, entry.name, kPreset);
}

/// The settings with those of their preset filled in.
Json without_preset(const Entry& entry, const Json& settings) {
  const auto given = settings.find(kPreset);
  if (entry.presets.empty() || given == settings.end()) return settings;
  PRISM_CHECK(given->is_string(), entry.name, "preset: expected a name; found {}; choose one.", given->dump());
  Json all = *given == kChanged ? Json::object() : find_preset(entry, given->get<std::string>()).settings;
  all.update(settings);
  all.erase(kPreset);
  return all;
}

}  // namespace

std::vector<std::string> selector_names() {
  std::vector<std::string> names;
  for (const auto& each : entries()) names.push_back(each.name);
  return names;
}

std::string selector_help(const std::string& name) {
  return find(name).help;
}

std::vector<FieldDescription> selector_fields(const std::string& name) {
  const auto& entry = find(name);
  auto fields = entry.fields();
  if (entry.presets.empty()) return fields;
  std::string help = "settings to start from";
  for (const auto& preset : entry.presets) help += fmt::format("; {}: {}", preset.name, preset.help);
  fields.insert(fields.begin(), {kPreset, "text", entry.presets.front().name, help});
  return fields;
}

Json selector_settings(const std::string& name, const Words& words) {
  const auto& entry = find(name);
  const Preset* preset = entry.presets.empty() ? nullptr : &entry.presets.front();
  Words others;
  for (const auto& word : words) {
    if (preset != nullptr && word.first == kPreset)
      preset = &find_preset(entry, word.second);
    else
      others.push_back(word);
  }
  if (preset == nullptr) return entry.settings(Json::object(), others);
  const Json plain = entry.settings(preset->settings, {}), all = entry.settings(preset->settings, others);
  Json settings = {{kPreset, all == plain ? preset->name : kChanged}};
  settings.update(all);
  return settings;
}

std::string settings_difference(const Json& found, const Json& expected) {
  if (!found.is_object()) return "other settings";
  std::vector<std::string> parts;
  Json all = expected;
  all.update(found);
  for (const auto& [name, _] : all.items()) {
    const auto one = found.value(name, Json()), other = expected.value(name, Json());
    if (one != other && name != kPreset)
      parts.push_back(fmt::format("{} {} instead of {}", name, one.dump(), other.dump()));
  }
  if (parts.empty() && found != expected)  // else it only says that other fields differ
    parts.push_back(fmt::format("{} {} instead of {}", kPreset, found.value(kPreset, Json()).dump(),
                                expected.value(kPreset, Json()).dump()));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::unique_ptr<Selector> find_selector(const std::string& name, const Json& settings, const PrefillCosts& costs) {
  const auto& entry = find(name);
  return entry.make(without_preset(entry, settings), costs);
}

std::optional<PrefillShape> cost_shape(const std::string& name, const Json& settings, torch::ScalarType type,
                                       int64_t head_dim) {
  const auto& entry = find(name);
  if (!entry.cost_blocks) return std::nullopt;
  const BlockSizes blocks = entry.cost_blocks(without_preset(entry, settings));
  return PrefillShape{type, head_dim, blocks.queries(), blocks.keys()};
}

}  // namespace prism
