#include "prism/report/page/prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/report/draw/number_text.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// A record's settings, kept until it is known which of them differ between records.
struct Settings {
  PrefillMethodName* method;
  Json values;
};

/// Settings that control how much is kept. Records that differ only in these form one line of a plot.
const std::set<std::string> kAmounts = {"p",     "p_high", "p_low",  "threshold", "alpha",
                                        "gamma", "share",  "window", "vertical",  "slash"};

/// Settings whose 0 means that the selector chooses; a name leaves it out.
const std::set<std::string> kChosenAtZero = {"p_high", "p_low", "high_dims", "low_dims", "query_block", "key_block"};

/// A record's settings but for the preset, whose settings are in the record and may be others in later versions.
/// Records from before these selectors had last_dense have its 0.
Json settings_of(const Json& record) {
  static const std::set<std::string> once_without = {"spectral", "auto", "mean_pooling"};
  Json settings = record.value("settings", Json::object());
  settings.erase("preset");
  if (once_without.contains(record.at("selector").get<std::string>())) settings.emplace("last_dense", 0);
  return settings;
}

/// Whether a setting is one of the amounts. The share of one band alone is not: p sets the other's.
bool is_amount(const std::string& name, const Json& settings) {
  const auto is_set = [&](const char* share) { return settings.contains(share) && settings[share] != 0; };
  if (name == "p_high" || name == "p_low") return is_set("p_high") && is_set("p_low");
  return kAmounts.contains(name);
}

/// The values of each setting of a selector and how often they are in its records.
struct SeenSettings {
  std::map<std::string, std::map<std::string, int64_t>> counts;
  int64_t records = 0;
  std::set<std::string> differing;  ///< settings that are not the same in all records, but for amounts

  bool differs(const std::string& name) const { return counts.at(name).begin()->second < records; }
  const std::string& commonest(const std::string& name) const {
    const auto less = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto& values = counts.at(name);
    return std::max_element(values.begin(), values.end(), less)->first;
  }
};

std::map<std::string, SeenSettings> seen_settings(const std::vector<Settings>& all) {
  std::map<std::string, SeenSettings> seen;
  for (const auto& [method, values] : all) {
    auto& selector = seen[method->selector];
    ++selector.records;
    for (const auto& [name, value] : values.items()) ++selector.counts[name][value_text(value)];
  }
  for (const auto& [method, values] : all) {
    auto& selector = seen[method->selector];
    for (const auto& [name, value] : values.items())
      if (selector.differs(name) && !is_amount(name, values)) selector.differing.insert(name);
  }
  return seen;
}

/// Adds the settings that differ between the records of a selector to its name; where these are many, those with the
/// commonest value are left out.
void name_settings(const std::vector<Settings>& all) {
  constexpr size_t kMany = 4;
  const auto seen = seen_settings(all);
  for (const auto& [method, values] : all) {
    const auto& selector = seen.at(method->selector);
    const bool is_short = selector.differing.size() >= kMany;
    method->text = method->series = method->selector + method->text;
    for (const auto& [name, value] : values.items()) {
      const bool amount = is_amount(name, values);
      const std::string text = value_text(value);
      const bool is_left_out =
          is_short && !amount ? text == selector.commonest(name) : kChosenAtZero.contains(name) && value == 0;
      if (!selector.differs(name) || is_left_out) continue;
      const std::string word = fmt::format(", {} {}", name, text);
      method->text += word;
      if (!amount) method->series += word;
    }
  }
}

class Reader {
 public:
  void read(const fs::path& file) {
    std::istringstream stream(read_file(file));
    const size_t before = records_.speeds.size() + records_.losses.size();
    int64_t number = 0;
    for (std::string line; std::getline(stream, line);) {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string place = fmt::format("{}, line {}", file.string(), number);
      try {
        add(parse_json(line, place), place);
      } catch (const Json::exception&) {
        fail(place);
      }
    }
    PRISM_CHECK(records_.speeds.size() + records_.losses.size() > before, "report",
                "--prefill: expected lines of prism bench prefill --json or prism eval --json; found none in {}; name "
                "another file.",
                file.string());
  }

  PrefillRecords take() {
    std::vector<Settings> all;
    for (size_t i = 0; i < records_.speeds.size(); ++i) all.push_back({&records_.speeds[i].method, speed_settings_[i]});
    for (size_t i = 0; i < records_.losses.size(); ++i) all.push_back({&records_.losses[i].method, loss_settings_[i]});
    name_settings(all);
    return std::move(records_);
  }

 private:
  [[noreturn]] static void fail(const std::string& place) {
    throw InputError("report", fmt::format("--prefill: expected lines of prism bench prefill --json or prism eval "
                                           "--json; found another in {}; name another file.",
                                           place));
  }

  void add(const Json& line, const std::string& place) {
    if (!line.is_object()) fail(place);
    if (line.value("bench", "") == "prefill") return add_speed(line);
    if (line.value("task", "") == "perplexity" && line.contains("prefill")) return add_loss(line);
    if (line.value("task", "") == "perplexity difference") return;  // comes after the lines of both
    fail(place);
  }

  static std::string setup_of(const Json& line) {
    std::string text = line.at("model").get<std::string>();
    const auto files = line.value("files", std::vector<std::string>());
    for (size_t i = 0; i < files.size(); ++i) text += (i == 0 ? " on " : " and ") + files[i];
    const auto window = line.value("window", int64_t{0}), stride = line.value("stride", window);
    if (window > 0) text += fmt::format(", windows of {}", grouped(window));
    if (stride != window) text += fmt::format(" every {}", grouped(stride));
    const auto dtype = line.value("dtype", "");
    return dtype.empty() ? text : text + ", " + dtype;
  }

  static std::optional<double> distant_answers(const Json& line) {
    const double half = 0.5 * line.value("window", std::numeric_limits<double>::infinity());
    int64_t asked = 0, right = 0;
    for (const auto& answer : line.value("answers", Json::array())) {
      if (answer.at(0).get<double>() <= half) continue;
      ++asked;
      right += answer.at(1).get<int64_t>() != 0;
    }
    return asked == 0 ? std::nullopt : std::optional(100.0 * right / asked);
  }

  void add_speed(const Json& line) {
    auto& row = records_.speeds.emplace_back();
    row.method.selector = line.at("selector").get<std::string>();
    row.heads = fmt::format("{}, {} on {}, {} wide, {}", line.at("mix").get<std::string>(),
                            line.at("heads").get<int64_t>(), line.at("kv_heads").get<int64_t>(),
                            line.at("head_dim").get<int64_t>(), line.at("dtype").get<std::string>());
    row.tokens = line.at("tokens").get<int64_t>();
    for (const auto& [name, value] : {std::pair{"density", &row.density},
                                      {"recall", &row.recall},
                                      {"oracle_density", &row.oracle_density},
                                      {"select_ms", &row.select_ms},
                                      {"attend_ms", &row.attend_ms},
                                      {"dense_ms", &row.dense_ms},
                                      {"sdpa_ms", &row.sdpa_ms},
                                      {"speedup", &row.speedup}})
      *value = line.at(name).get<double>();
    if (row.select_ms > 0) row.select_mib = line.value("extra_bytes", 0.0) / (1 << 20);
    for (const auto& head : line.value("by_head", Json::array()))
      row.by_head.push_back({head.at("density").get<double>(), head.at("recall").get<double>()});
    speed_settings_.push_back(settings_of(line));
  }

  void add_loss(const Json& line) {
    const auto& prefill = line.at("prefill");
    auto& row = records_.losses.emplace_back();
    row.method.selector = prefill.at("selector").get<std::string>();
    row.setup = setup_of(line);
    // Part of the selector's name, since some selectors give another result for a prompt in chunks.
    if (const auto chunk = prefill.value("chunk", int64_t{0}); chunk > 0)
      row.method.text = fmt::format(", chunks of {}", grouped(chunk));
    row.tokens = line.at("tokens").get<int64_t>();
    row.density = prefill.at("density").get<double>();
    row.recall = prefill.value("recall", 0.0);
    const auto& perplexity = line.at("token_perplexity");
    row.perplexity = perplexity.is_null() ? std::numeric_limits<double>::infinity() : perplexity.get<double>();
    row.distant_answers = distant_answers(line);
    loss_settings_.push_back(settings_of(prefill));
  }

  PrefillRecords records_;
  std::vector<Json> speed_settings_, loss_settings_;
};

}  // namespace

std::vector<std::string> PrefillRecords::series() const {
  std::vector<std::string> names;
  const auto add = [&](const PrefillMethodName& method) {
    if (std::find(names.begin(), names.end(), method.series) == names.end()) names.push_back(method.series);
  };
  for (const auto& row : losses) add(row.method);
  for (const auto& row : speeds) add(row.method);
  return names;
}

double PrefillRecords::dense_perplexity(const std::string& setup) const {
  for (const auto& row : losses)
    if (row.method.selector == "dense" && row.setup == setup) return row.perplexity;
  return 0;
}

PrefillRecords read_prefill_records(const std::vector<fs::path>& files) {
  Reader reader;
  for (const auto& file : files) reader.read(file);
  return reader.take();
}

}  // namespace prism
