#include "prism/report/compare/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/machine.h"
#include "prism/core/records.h"
#include "prism/core/statistics.h"
#include "prism/core/text/names.h"
#include "prism/records/run_event.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostLayers = 4096;  // a plot has a position for each

void check(bool holds, const std::string& where, std::string_view expected, const char* name, const Json& found) {
  PRISM_CHECK(holds, "report", "{}: expected {} as {}; found {}; correct the line or leave the run out.", where,
              expected, name, to_text(found));
}

void check_layers(std::vector<LayerRecord>& layers, const std::string& where) {
  for (auto& layer : layers) {
    // A picture draws every head, so an absurd count would make an absurd page.
    check(layer.heads >= 1 && layer.heads <= 4096 && layer.head_dim >= 1, where, "1 to 4096 heads of width >= 1",
          "layers", fields_to_json(layer));
    if (layer.kv_heads == 0) layer.kv_heads = layer.heads;
  }
}

/// In ascending order by layer. Layers without a finite distance are omitted.
std::vector<LayerDistance> ordered_distances(const AttentionDistance& record, const std::string& where) {
  std::vector<LayerDistance> result;
  for (const auto& layer : record.layers) {
    check(layer.layer >= 0 && layer.layer < kMostLayers, where, fmt::format("layers 0 to {}", kMostLayers - 1),
          "layers", fields_to_json(layer));
    if (std::isfinite(layer.distance)) result.push_back(layer);
  }
  std::sort(result.begin(), result.end(),
            [](const LayerDistance& a, const LayerDistance& b) { return a.layer < b.layer; });
  const auto twice = std::adjacent_find(
      result.begin(), result.end(), [](const LayerDistance& a, const LayerDistance& b) { return a.layer == b.layer; });
  if (twice != result.end()) check(false, where, "every layer once", "layers", twice->layer);
  return result;
}

RunDiagnostics diagnostics_of(const DiagnosticsRecord& record, const std::string& where) {
  RunDiagnostics result;
  result.step_ms = record.step_ms;
  for (const auto& layer : record.report.entropy) {
    result.entropy.push_back(layer.entropy);
    result.head_entropies.push_back(layer.head_entropies);
  }
  for (const auto& layer : record.report.activations) {
    result.residual_rms.push_back(layer.residual_rms);
    result.dead_units.push_back(mean_of(layer.dead_units));
  }
  const size_t layers = std::max(result.entropy.size(), result.residual_rms.size());
  check(layers <= kMostLayers, where, fmt::format("at most {} layers", kMostLayers), "entropy", layers);
  std::vector<double> updates;
  for (const auto& parameter : record.report.parameters)
    if (std::isfinite(parameter.update)) updates.push_back(parameter.update);
  result.parameters = record.report.parameters;
  result.update = updates.empty() ? NAN : median(std::move(updates));
  return result;
}

void add_point(std::vector<CurvePoint>& curve, const Run& run, double value) {
  if (!std::isfinite(value)) return;
  while (!curve.empty() && curve.back().trained >= run.trained) curve.pop_back();
  curve.push_back({run.trained, value, run.seconds});
}

/// Returns false for final measurements, which have their own tokens and seconds.
template <class T>
constexpr bool moves_on() {
  using Record = std::decay_t<T>;
  return !std::is_same_v<Record, UnknownRecord> && !std::is_same_v<Record, TextLossRecord> &&
         !std::is_same_v<Record, ClassificationRecord> && !std::is_same_v<Record, AttentionDistance>;
}

/// Takes records in order. finish() computes what needs all of them.
class RunReader {
 public:
  RunReader(Run& run, const fs::path& file) : run_(run), records_(file) {}

  void add(const Json& json) {
    const RunEvent event = records_.read(json);
    std::visit(
        [&](const auto& record) {
          if constexpr (moves_on<decltype(record)>()) {
            run_.trained = event.head.trained.value().value_or(run_.trained);
            run_.seconds = event.head.seconds.value_or(run_.seconds);
          }
          take(record, event.head);
        },
        event.record);
  }

  void finish() {
    if (!shares_.empty()) run_.peak_share = median(std::move(shares_));
    if (!waits_.empty()) run_.wait_share = median(std::move(waits_));
    if (run_.finished && std::isfinite(end_rate_)) {
      run_.rate = end_rate_;
    } else if (!rates_.empty()) {
      run_.rate = median(std::move(rates_));
    }
  }

 private:
  void take(const UnknownRecord&, const RecordHead&) {}

  void take(const StartRecord& record, const RecordHead&) {
    if (!record.name.empty()) run_.name = record.name;
    run_.schedule = record.schedule;
    run_.dtype = record.dtype;
    run_.metric = record.metric.value_or(Metric());
    // It becomes part of headings and of axis labels, which are otherwise fixed texts.
    check(is_metric_name(run_.metric.name), records_.where(),
          "up to 40 small letters, digits and _, unlike other fields of records,", "metric's name", run_.metric.name);
    run_.tokenizer = record.tokenizer.value_or("");
    run_.validation = record.validation.value_or("");
    run_.seed = record.seed;
    run_.parameters = record.parameters;
    run_.flops_per_token = record.flops_per_token;
    run_.total = record.total.value();
    if (record.total.examples) run_.unit = TrainingUnit::examples;
    run_.layers = record.layers;
    check_layers(run_.layers, records_.where());
    take_machine(record.machine);
  }

  void take(const ResumeRecord& record, const RecordHead&) { take_machine(record); }

  /// For a resumed run, the machine on which it was last resumed counts.
  void take_machine(const MachineRecord& machine) {
    run_.cpu = machine.cpu;
    run_.threads = machine.threads;
    run_.peak_gflops = machine.peak_gflops;
    shares_.clear();  // relative to another machine's limit
  }

  void take(const TrainRecord& record, const RecordHead&) {
    add_point(run_.train, run_, record.loss);
    if (record.head_share) add_point(run_.train_share, run_, mean_of(*record.head_share));
    if (std::isfinite(record.rate.value())) rates_.push_back(record.rate.value());
    if (record.peak_share) shares_.push_back(*record.peak_share);
    if (record.wait_share) waits_.push_back(*record.wait_share);
    // A run that was extended after its end has started to train again.
    run_.finished = false;
    run_.diverged.reset();
  }

  void take(const EvalRecord& record, const RecordHead&) {
    add_point(run_.valid, run_, record.value);
    if (record.head_share) add_point(run_.valid_share, run_, mean_of(*record.head_share));
  }

  void take(const DiagnosticsRecord& record, const RecordHead& head) {
    auto& all = run_.diagnostics;
    while (!all.empty() && all.back().trained >= run_.trained) all.pop_back();
    if (!all.empty()) {
      all.back().parameters = {};
      all.back().head_entropies = {};
    }
    all.push_back(diagnostics_of(record, records_.where()));
    all.back().step = head.step.value_or(0);
    all.back().trained = run_.trained;
  }

  void take(const WarningRecord& record, const RecordHead&) { run_.warnings.push_back({run_.trained, record.text}); }
  void take(const SampleRecord& record, const RecordHead&) { run_.samples.push_back({record, run_.trained}); }
  void take(const DivergedRecord& record, const RecordHead&) { run_.diverged = record.place; }
  void take(const AttentionDistance& record, const RecordHead&) {
    run_.distances = ordered_distances(record, records_.where());
  }

  void take(const TextLossRecord& record, const RecordHead&) {
    check(record.tokens >= 1, records_.where(), "at least one token", "tokens", record.tokens);
    if (!std::isfinite(record.nats)) return;
    const auto earlier = std::find_if(run_.text_losses.begin(), run_.text_losses.end(),
                                      [&](const TextLossRecord& other) { return other.text == record.text; });
    if (earlier == run_.text_losses.end()) {
      run_.text_losses.push_back(record);
    } else {
      *earlier = record;
    }
  }

  void take(const ClassificationRecord& record, const RecordHead&) { run_.classifications.push_back(record); }

  void take(const EndRecord& record, const RecordHead&) {
    add_point(run_.valid, run_, record.value.value_or(NAN));
    end_rate_ = record.rate.value();
    run_.peak_memory_bytes = record.peak_memory_bytes;
    run_.finished = true;
    run_.diverged.reset();
  }

  Run& run_;
  RunEventReader records_;
  double end_rate_ = NAN;
  std::vector<double> rates_, shares_, waits_;
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

/// What to type instead of a folder that is not a run: the runs in it, if any.
std::string runs_below(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (fs::exists(entry.path() / kRunRecordsName, code)) found.push_back(entry.path().string());
  }
  if (found.empty()) return "name the folder that prism train wrote to";
  constexpr size_t kShown = 4;
  std::sort(found.begin(), found.end());
  if (found.size() > kShown) {
    // A sweep's folder contains other folders besides its runs.
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

bool Run::was_busy() const {
  return wait_share.value_or(0) > CoreWait::kBusy;
}

Run read_run(const fs::path& folder) {
  const fs::path path = folder / kRunRecordsName;
  std::error_code code;
  PRISM_CHECK(fs::is_directory(folder, code), "report",
              "expected a run's folder; found {} {}; name one that prism train wrote to.",
              fs::exists(folder, code) ? "a file at" : "nothing at", folder.string());
  PRISM_CHECK(fs::exists(path, code) || code, "report", "{}: expected records.jsonl in it; found none; {}.",
              folder.string(), runs_below(folder));
  Run run;
  const auto records = read_records(path, &run.is_cut);
  PRISM_CHECK(
      !records.empty(), "report",
      "{}: expected at least one whole record; found none: the run has not begun, or its file was cut; leave it out.",
      path.string());
  run.folder = folder;
  run.name = last_name(fs::absolute(folder));
  RunReader reader(run, path);
  for (const auto& record : records) reader.add(record);
  reader.finish();
  if (const fs::path recipe = folder / "recipe.json"; is_there(recipe)) {
    run.recipe = recipe_fields(read_json(recipe.string()));
  }
  if (const fs::path timing = folder / kRunTimingName; is_there(timing)) {
    run.timing = fields_from_json<RunTiming>(read_json(timing.string()), timing.string());
    run.rate = run.timing->tokens_per_s;
    run.wait_share = run.timing->wait_share;
  }
  return run;
}

}  // namespace prism
