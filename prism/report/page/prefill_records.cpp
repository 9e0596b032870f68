#include "prism/report/page/prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
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

/// The fields of a line, each checked. A sentence about a wrong one names it.
class LineFields {
 public:
  LineFields(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  std::string text(const char* name) const {
    const Json value = find(name);
    if (!value.is_string()) fail(name, "text", value);
    return value.get<std::string>();
  }
  double number(const char* name, double low, double high, std::optional<double> if_absent = {}) const {
    if (if_absent && !json_.contains(name)) return *if_absent;
    const Json value = find(name);
    return in_range(name, value, low, high);
  }
  int64_t whole(const char* name, int64_t low, std::optional<int64_t> if_absent = {}) const {
    if (if_absent && !json_.contains(name)) return *if_absent;
    constexpr int64_t kMost = int64_t{1} << 53;
    const Json value = find(name);
    if (!value.is_number_integer() || value.get<double>() < low || value.get<double>() > kMost)
      fail(name, fmt::format("a whole number of {} or more", low), value);
    return value.get<int64_t>();
  }
  LineFields object(const char* name) const {
    const Json value = find(name);
    if (!value.is_object()) fail(name, "an object", value);
    return {value, place_};
  }
  /// Empty if the line does not have it.
  Json list(const char* name) const {
    Json value = json_.value(name, Json::array());
    if (!value.is_array()) fail(name, "a list", value);
    return value;
  }
  bool has(const char* name) const { return json_.contains(name); }
  const Json& json() const { return json_; }
  const std::string& place() const { return place_; }

  double in_range(const char* name, const Json& value, double low, double high) const {
    if (!value.is_number() || !(value.get<double>() >= low && value.get<double>() <= high))
      fail(name, fmt::format("a number from {:g} to {:g}", low, high), value);
    return value.get<double>();
  }
  [[noreturn]] void fail(const std::string& name, const std::string& expected, const Json& found) const {
    throw InputError(
        "report", fmt::format("--prefill: {}: expected {} as {}; found {}; correct the line or leave it out.", place_,
                              expected, name, found.is_null() ? "none" : to_text(found)));
  }

 private:
  Json find(const char* name) const { return json_.value(name, Json()); }

  Json json_;
  std::string place_;
};

/// A record's settings but for the preset, whose settings are in the record and may be others in later versions.
/// Records from before these selectors had last_dense have its 0.
Json settings_of(const LineFields& record) {
  static const std::set<std::string> once_without = {"spectral", "auto", "mean_pooling"};
  Json settings = record.has("settings") ? record.object("settings").json() : Json::object();
  settings.erase("preset");
  if (once_without.contains(record.text("selector"))) settings.emplace("last_dense", 0);
  return settings;
}

constexpr double kMostMilliseconds = 1e12, kMostBytes = 1e15;
constexpr double kMostShare = 1.001;  // the sum of rounded shares

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
      add(parse_json(line, place), place);
    }
    PRISM_CHECK(records_.speeds.size() + records_.losses.size() > before, "report",
                "--prefill: expected lines of prism bench prefill --json, or perplexities of prism eval --json; found "
                "none in {}; name another file.",
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
  void add(const Json& line, const std::string& place) {
    const auto is = [&](const char* name, const char* value) { return line.contains(name) && line[name] == value; };
    PRISM_CHECK(line.is_object(), "report", "--prefill: {}: expected an object; found {}; name another file.", place,
                to_text(line));
    if (is("bench", "prefill")) return add_speed({line, place});
    if (is("task", "perplexity") && line.contains("prefill")) return add_loss({line, place});
    if (is("task", "perplexity difference")) return;  // comes after the lines of both
    throw InputError("report", fmt::format("--prefill: expected lines of prism bench prefill --json or prism eval "
                                           "--json; found another in {}; name another file.",
                                           place));
  }

  /// Perplexities are comparable if all of this is the same.
  static std::string setup_of(const LineFields& line) {
    std::string text = line.text("model");
    const Json files = line.list("files");
    for (size_t i = 0; i < files.size(); ++i) {
      if (!files[i].is_string()) line.fail("files", "a list of texts", files);
      text += (i == 0 ? " on " : " and ") + files[i].get<std::string>();
    }
    text += fmt::format(", {} tokens", grouped(line.whole("tokens", 1)));
    const auto window = line.whole("window", 1, 0), stride = line.whole("stride", 1, window);
    if (window > 0) text += fmt::format(", windows of {}", grouped(window));
    if (stride != window) text += fmt::format(" every {}", grouped(stride));
    if (line.has("rope_scaling") && !line.text("rope_scaling").empty())
      text += fmt::format(", {} to {}", line.text("rope_scaling"), grouped(line.whole("context", 1)));
    if (line.has("dtype")) text += ", " + line.text("dtype");
    if (line.has("weights"))
      text += line.text("weights") == "file" ? ", weights as in the file" : ", weights in " + line.text("weights");
    return text;
  }

  static std::optional<double> distant_answers(const LineFields& line) {
    const double half = 0.5 * static_cast<double>(line.whole("window", 1, std::numeric_limits<int64_t>::max()));
    const Json answers = line.list("answers");
    int64_t asked = 0, right = 0;
    for (const auto& answer : answers) {
      if (!answer.is_array() || answer.size() != 2 || (answer[1] != 0 && answer[1] != 1))
        line.fail("answers", "pairs of a distance in tokens and 1 (right) or 0", answer);
      if (line.in_range("a distance of answers", answer[0], 0, 1e15) <= half) continue;
      ++asked;
      right += answer[1] == 1;
    }
    return asked == 0 ? std::nullopt : std::optional(100.0 * right / asked);
  }

  static PrefillHeadShare head_share(const LineFields& head) {
    return {head.number("density", 0, kMostShare), head.number("recall", 0, kMostShare)};
  }

  void add_speed(const LineFields& line) {
    auto& row = records_.speeds.emplace_back();
    row.method.selector = line.text("selector");
    row.heads = fmt::format("{}, {} on {}, {} wide, {}", line.text("mix"), line.whole("heads", 1),
                            line.whole("kv_heads", 1), line.whole("head_dim", 1), line.text("dtype"));
    row.tokens = line.whole("tokens", 1);
    for (const auto& [name, value] :
         {std::pair{"density", &row.density}, {"recall", &row.recall}, {"oracle_density", &row.oracle_density}})
      *value = line.number(name, 0, kMostShare);
    for (const auto& [name, value] : {std::pair{"select_ms", &row.select_ms},
                                      {"attend_ms", &row.attend_ms},
                                      {"dense_ms", &row.dense_ms},
                                      {"sdpa_ms", &row.sdpa_ms},
                                      {"speedup", &row.speedup}})
      *value = line.number(name, 0, kMostMilliseconds);
    if (row.select_ms > 0 && line.has("extra_bytes"))
      row.select_mib = line.number("extra_bytes", 0, kMostBytes) / (1 << 20);
    const Json heads = line.list("by_head");
    for (const auto& head : heads) {
      if (!head.is_object()) line.fail("by_head", "a list of objects", head);
      row.by_head.push_back(head_share({head, fmt::format("{}, by_head", line.place())}));
    }
    speed_settings_.push_back(settings_of(line));
  }

  void add_loss(const LineFields& line) {
    const auto prefill = line.object("prefill");
    auto& row = records_.losses.emplace_back();
    row.method.selector = prefill.text("selector");
    row.setup = setup_of(line);
    // Part of the selector's name, since some selectors give another result for a prompt in chunks.
    if (const auto chunk = prefill.whole("chunk", 0, 0); chunk > 0)
      row.method.text = fmt::format(", chunks of {}", grouped(chunk));
    row.density = prefill.number("density", 0, kMostShare);
    row.recall = prefill.number("recall", 0, kMostShare, 0.0);
    const bool is_infinite = line.has("token_perplexity") && line.json()["token_perplexity"].is_null();
    row.perplexity = is_infinite ? std::numeric_limits<double>::infinity()
                                 : line.number("token_perplexity", 0, std::numeric_limits<double>::max());
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
    if (row.method.selector == "dense" && row.setup == setup && std::isfinite(row.perplexity)) return row.perplexity;
  return 0;
}

PrefillRecords read_prefill_records(const std::vector<fs::path>& files) {
  Reader reader;
  for (const auto& file : files) reader.read(file);
  return reader.take();
}

}  // namespace prism
