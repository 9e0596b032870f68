#include "prism/sparse/selectors.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>

#include "prism/core/names.h"
#include "prism/sparse/flash_prefill.h"
#include "prism/sparse/flex_prefill.h"
#include "prism/sparse/plain_selectors.h"
#include "prism/sparse/spectral.h"
#include "prism/sparse/vertical_slash.h"
#include "prism/sparse/xattention.h"

namespace prism {
namespace {

using Words = std::vector<std::pair<std::string, std::string>>;

struct Entry {
  std::string name, help;
  std::function<std::unique_ptr<Selector>(const Json&)> make;
  std::function<Json(const Words&)> settings;
  std::function<std::vector<FieldDescription>()> fields;
};

template <class Options>
Entry entry(const char* name, const char* help, std::unique_ptr<Selector> (*make)(const Options&)) {
  return {name, help, [=](const Json& settings) { return make(fields_from_json<Options>(settings, name)); },
          [](const Words& words) {
            Options options;
            for (const auto& [field, value] : words) set_field(options, field, value);
            return fields_to_json(options);
          },
          [] { return describe_fields<Options>(); }};
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> list = {
      entry("spectral", "two bands of rotary pairs, calibrated (arXiv 2602.08426)", make_spectral_selector),
      entry("flash_prefill", "every query against pooled keys (arXiv 2603.06199)", make_flash_prefill_selector),
      entry("xattention", "sums along antidiagonals (arXiv 2503.16428)", make_xattention_selector),
      entry("flex_prefill", "query-aware or vertical-slash, head by head (arXiv 2502.20766)",
            make_flex_prefill_selector),
      entry("vertical_slash", "columns and diagonals, from the last queries (MInference, arXiv 2407.02490)",
            make_vertical_slash_selector),
      entry("mean_pooling", "pooled queries against pooled keys, all features alike", make_mean_pooling_selector),
      entry("sink_window", "the first and the last blocks", make_sink_window_selector),
      entry("random", "blocks by chance", make_random_selector),
      entry("oracle", "by the exact attention, as slow as that", make_oracle_selector),
      entry("dense", "all blocks", make_dense_selector)};
  return list;
}

const Entry& find(const std::string& name) {
  std::map<std::string, const Entry*> known;
  for (const auto& each : entries()) known[each.name] = &each;
  return *find_by_name(known, name, "selector", "selector");
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
  return find(name).fields();
}

Json selector_settings(const std::string& name, const Words& words) {
  return find(name).settings(words);
}

std::unique_ptr<Selector> find_selector(const std::string& name, const Json& settings) {
  return find(name).make(settings);
}

}  // namespace prism
