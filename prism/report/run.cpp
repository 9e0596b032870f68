#include "prism/report/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/names.h"
#include "prism/core/records.h"
#include "prism/core/statistics.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostLayers = 4096;  // a plot has a place for each

/// One record with its place, so that a field of the wrong type can be named.
class Record {
 public:
  Record(const Json& json, const fs::path& path, size_t number) : json_(json), path_(path), number_(number) {}

  std::optional<double> number(const char* name) const {
    const Json* value = find(name);
    if (!value) return std::nullopt;
    if (!value->is_number()) fail(name, "a number", *value);
    return value->get<double>();
  }

  std::optional<int64_t> whole(const char* name) const {
    const auto value = number(name);
    if (!value) return std::nullopt;
    if (!(std::abs(*value) < 9e18)) fail(name, "a whole number", *find(name));
    return static_cast<int64_t>(*value);
  }

  std::string text(const char* name) const {
    const Json* value = find(name);
    if (!value) return {};
    if (!value->is_string()) fail(name, "text", *value);
    return value->get<std::string>();
  }

  std::vector<RunLayer> layers() const {
    std::vector<RunLayer> result;
    for (const Record& layer : objects("layers")) {
      RunLayer& row = result.emplace_back();
      row.heads = layer.whole("heads").value_or(0);
      row.kv_heads = layer.whole("kv_heads").value_or(row.heads);
      row.head_dim = layer.whole("head_dim").value_or(0);
      // A picture draws every head; a count beyond reason would be a page beyond reason.
      if (row.heads < 1 || row.heads > 4096 || row.head_dim < 1) {
        fail("layers", "1 to 4096 heads of width >= 1", layer.json_);
      }
    }
    return result;
  }

  /// Ascending by layer; a layer without a finite distance is left out.
  std::vector<RunDistance> distances() const {
    std::vector<RunDistance> result;
    for (const Record& layer : objects("layers")) {
      const auto number = layer.whole("layer");
      const auto distance = layer.number("distance");
      if (!number || *number < 0 || *number >= kMostLayers) {
        fail("layers", fmt::format("layers 0 to {}", kMostLayers - 1), layer.json_);
      }
      if (!distance || !std::isfinite(*distance)) continue;
      result.push_back({*number, layer.whole("heads").value_or(0), *distance});
    }
    std::sort(result.begin(), result.end(), by_layer);
    const auto twice = std::adjacent_find(
        result.begin(), result.end(), [](const RunDistance& a, const RunDistance& b) { return a.layer == b.layer; });
    if (twice != result.end()) fail("layers", "every layer once", *find("layers"));
    return result;
  }

  RunDiagnostics diagnostics() const {
    RunDiagnostics result;
    result.step = whole("step").value_or(0);
    result.step_ms = number("step_ms").value_or(NAN);
    for (const Record& layer : objects("entropy")) {
      result.entropy.push_back(layer.number("entropy").value_or(NAN));
      result.head_entropies.push_back(layer.numbers("head_entropies"));
    }
    for (const Record& layer : objects("activations")) {
      result.residual_rms.push_back(layer.number("residual_rms").value_or(NAN));
      result.dead_units.push_back(layer.mean_of("dead_units"));
    }
    std::vector<double> updates;
    for (const Record& parameter : objects("parameters")) {
      const auto& added = result.parameters.emplace_back(
          RunParameter{parameter.text("name"), parameter.number("gradient").value_or(NAN),
                       parameter.number("weight").value_or(NAN), parameter.number("update").value_or(NAN)});
      if (std::isfinite(added.update)) updates.push_back(added.update);
    }
    if (result.entropy.size() > kMostLayers || result.residual_rms.size() > kMostLayers)
      fail("entropy", fmt::format("at most {} layers", kMostLayers), json_);
    result.update = updates.empty() ? NAN : median(std::move(updates));
    return result;
  }

  /// Absent where the loss is not finite.
  std::optional<RunTextLoss> text_loss() const {
    const RunTextLoss loss{text("text"), number("nats").value_or(NAN), whole("tokens").value_or(0)};
    if (loss.tokens < 1) fail("tokens", "at least one token", json_);
    return std::isfinite(loss.nats) ? std::optional(loss) : std::nullopt;
  }

 private:
  /// None where there is no list; NaN for what was not finite, which is null there.
  std::vector<double> numbers(const char* name) const {
    const Json* list = find(name);
    std::vector<double> result;
    if (!list) return result;
    if (!list->is_array()) fail(name, "a list", *list);
    for (const auto& value : *list) {
      if (!value.is_number() && !value.is_null()) fail(name, "a list of numbers", value);
      result.push_back(value.is_null() ? NAN : value.get<double>());
    }
    return result;
  }

  /// Of a list of numbers; NaN of none.
  double mean_of(const char* name) const {
    const auto values = numbers(name);
    return values.empty() ? NAN : statistic(values).mean;
  }

  static bool by_layer(const RunDistance& a, const RunDistance& b) { return a.layer < b.layer; }

  /// The elements of a list of objects; none where there is no list.
  std::vector<Record> objects(const char* name) const {
    const Json* list = find(name);
    std::vector<Record> result;
    if (!list) return result;
    if (!list->is_array()) fail(name, "a list", *list);
    for (const auto& item : *list) {
      if (!item.is_object()) fail(name, "a list of objects", item);
      result.emplace_back(item, path_, number_);
    }
    return result;
  }

  /// The field's value; null (what a not-finite number is written as) counts as absent.
  const Json* find(const char* name) const {
    const auto member = json_.find(name);
    return member == json_.end() || member->is_null() ? nullptr : &*member;
  }

  [[noreturn]] void fail(const char* name, const std::string& expected, const Json& found) const {
    throw InputError(
        "report",
        fmt::format("{}, record {}: expected {} as {}; found {}; mend the line or leave the run out.", path_.string(),
                    number_, expected, name, found.dump(-1, ' ', true, Json::error_handler_t::replace)));
  }

  const Json& json_;
  const fs::path& path_;
  size_t number_;
};

void add_point(std::vector<CurvePoint>& curve, const Run& run, std::optional<double> loss) {
  if (!loss || !std::isfinite(*loss)) return;
  while (!curve.empty() && curve.back().tokens >= run.tokens) curve.pop_back();
  curve.push_back({run.tokens, *loss, run.seconds});
}

/// Takes records one after the other; what needs all of them waits for finish().
class RunReader {
 public:
  explicit RunReader(Run& run) : run_(run) {}

  void add(const Record& record) {
    const std::string kind = record.text("kind");
    if (kind == "attention_distance") run_.distances = record.distances();
    if (kind == "text_loss") add_text_loss(record.text_loss());
    if (kind == "attention_distance" || kind == "text_loss") return;
    run_.tokens = record.whole("tokens").value_or(run_.tokens);
    run_.seconds = record.number("seconds").value_or(run_.seconds);
    if (kind == "run") add_run(record);
    if (kind == "run" || kind == "resume") add_machine(record);
    if (kind == "train") add_train(record);
    if (kind == "eval" || kind == "end") add_point(run_.valid, run_, record.number("val_loss"));
    if (kind == "diagnostics") add_diagnostics(record.diagnostics());
    if (kind == "warning") run_.warnings.push_back({run_.tokens, record.text("text")});
    if (kind == "sample")
      run_.samples.push_back({run_.tokens, record.text("prompt"), record.number("temperature"), record.text("text")});
    if (kind == "end") {
      end_rate_ = record.number("tokens_per_s");
      run_.peak_memory_bytes = record.whole("peak_memory_bytes");
    }
    // A run that was prolonged after its end has begun to train again.
    if (kind == "train" || kind == "end") run_.finished = kind == "end";
    if (kind == "train" || kind == "end") run_.diverged.reset();
    if (kind == "diverged") run_.diverged = record.text("place");
  }

  void finish() {
    if (!shares_.empty()) run_.peak_share = median(std::move(shares_));
    if (run_.finished && end_rate_) {
      run_.tokens_per_s = end_rate_;
    } else if (!rates_.empty()) {
      run_.tokens_per_s = median(std::move(rates_));
    }
  }

 private:
  void add_run(const Record& record) {
    if (const std::string name = record.text("name"); !name.empty()) run_.name = name;
    run_.schedule = record.text("schedule");
    run_.dtype = record.text("dtype");
    run_.tokenizer = record.text("tokenizer");
    run_.validation = record.text("validation");
    run_.seed = record.whole("seed");
    run_.parameters = record.whole("parameters");
    run_.flops_per_token = record.whole("flops_per_token");
    run_.total_tokens = record.whole("total_tokens");
    run_.layers = record.layers();
  }

  /// A resumed run is where it was resumed last.
  void add_machine(const Record& record) {
    run_.cpu = record.text("cpu");
    run_.threads = record.whole("threads");
    run_.peak_gflops = record.number("peak_gflops");
    shares_.clear();  // of another machine's limit
  }

  void add_train(const Record& record) {
    add_point(run_.train, run_, record.number("loss"));
    if (const auto rate = record.number("tokens_per_s")) rates_.push_back(*rate);
    if (const auto share = record.number("peak_share")) shares_.push_back(*share);
  }

  void add_diagnostics(RunDiagnostics diagnostics) {
    diagnostics.tokens = run_.tokens;
    auto& all = run_.diagnostics;
    while (!all.empty() && all.back().tokens >= run_.tokens) all.pop_back();
    if (!all.empty()) {
      all.back().parameters = {};
      all.back().head_entropies = {};
    }
    all.push_back(std::move(diagnostics));
  }

  void add_text_loss(const std::optional<RunTextLoss>& loss) {
    if (!loss) return;
    const auto earlier = std::find_if(run_.text_losses.begin(), run_.text_losses.end(),
                                      [&](const RunTextLoss& other) { return other.text == loss->text; });
    if (earlier == run_.text_losses.end()) {
      run_.text_losses.push_back(*loss);
    } else {
      *earlier = *loss;
    }
  }

  Run& run_;
  std::optional<double> end_rate_;
  std::vector<double> rates_, shares_;
};

void flatten(const Json& json, const std::string& path, std::vector<RecipeField>& fields) {
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) flatten(value, path.empty() ? name : path + "." + name, fields);
  } else if (json.is_array() && !json.empty()) {
    for (size_t i = 0; i < json.size(); ++i) flatten(json[i], fmt::format("{}[{}]", path, i), fields);
  } else {
    fields.emplace_back(path, json.is_string() ? json.get<std::string>() : json.dump());
  }
}

/// What to type instead of a folder that holds no run: the runs below it, if there are any.
std::string runs_below(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (fs::exists(entry.path() / "records.jsonl", code)) found.push_back(entry.path().string());
  }
  if (found.empty()) return "name the folder that prism train wrote to";
  constexpr size_t kShown = 4;
  std::sort(found.begin(), found.end());
  if (found.size() > kShown) {
    // A sweep's folder has others beside its runs.
    const bool swept = std::all_of(found.begin(), found.end(),
                                   [](const std::string& run) { return run.find("-seed") != std::string::npos; });
    return fmt::format("it holds {} runs, name them: {}/{}", found.size(), folder.string(), swept ? "*-seed*" : "*");
  }
  return "it holds runs, name them: " + join_names(found);
}

}  // namespace

std::vector<RecipeField> recipe_fields(const Json& recipe) {
  std::vector<RecipeField> fields;
  flatten(recipe, "", fields);
  return fields;
}

Run read_run(const fs::path& folder) {
  const fs::path path = folder / "records.jsonl";
  std::error_code code;
  PRISM_CHECK(fs::is_directory(folder, code), "report",
              "expected a run's folder; found {} {}; name one that prism train wrote to.",
              fs::exists(folder, code) ? "a file at" : "nothing at", folder.string());
  PRISM_CHECK(fs::exists(path, code), "report", "{}: expected records.jsonl in it; found none; {}.", folder.string(),
              runs_below(folder));
  Run run;
  const auto records = read_records(path, &run.is_cut);
  PRISM_CHECK(
      !records.empty(), "report",
      "{}: expected at least one whole record; found none: the run has not begun, or its file was cut; leave it out.",
      path.string());
  run.folder = folder;
  const fs::path whole = fs::absolute(folder).lexically_normal();
  run.name = (whole.has_filename() ? whole : whole.parent_path()).filename().string();
  RunReader reader(run);
  for (size_t i = 0; i < records.size(); ++i) reader.add(Record(records[i], path, i + 1));
  reader.finish();
  if (const fs::path recipe = folder / "recipe.json"; fs::exists(recipe, code)) {
    run.recipe = recipe_fields(read_json(recipe.string()));
  }
  if (const fs::path timing = folder / kRunTimingName; fs::exists(timing, code)) {
    run.timing = fields_from_json<RunTiming>(read_json(timing.string()), timing.string());
    run.tokens_per_s = run.timing->tokens_per_s;
  }
  return run;
}

}  // namespace prism
