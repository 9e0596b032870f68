// The records of a run: one struct for each kind of line in records.jsonl, read and written through its visitor.
//
//   recorder.keep(head, TrainRecord{.loss = 4.2, .learning_rate = 6e-4, .grad_norm = 1.1, .rate =
//   {TrainingUnit::tokens, 4096}});
//
// A value that is not finite is null in the file and NaN here. An empty optional field is omitted.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/records/training_unit.h"

namespace prism {

/// A number of tokens or of examples, whichever the training counts. The other one is absent.
struct TrainingCount {
  std::optional<int64_t> tokens, examples;
  TrainingCount() = default;
  TrainingCount(TrainingUnit unit, int64_t count) { (unit == TrainingUnit::tokens ? tokens : examples) = count; }
  /// The number that is present, if any.
  std::optional<int64_t> value() const { return tokens ? tokens : examples; }
};

/// The fields that every record begins with.
struct RecordHead {
  std::optional<int64_t> step;
  TrainingCount trained;
  std::optional<double> seconds;
  template <class Visitor>
  void visit(Visitor& v) {
    v("step", step, "optimizer steps done");
    v("tokens", trained.tokens, "tokens trained on so far");
    v("examples", trained.examples, "examples trained on so far, of classifiers");
    v("seconds", seconds, "wall-clock seconds since the run began");
  }
};

/// Tokens or examples per second, whichever the training counts.
struct TrainingRate {
  std::optional<double> tokens_per_s, examples_per_s;
  TrainingRate() = default;
  TrainingRate(TrainingUnit unit, double rate) {
    (unit == TrainingUnit::tokens ? tokens_per_s : examples_per_s) = rate;
  }
  /// The rate that is present; NaN if none.
  double value() const { return tokens_per_s ? *tokens_per_s : examples_per_s.value_or(NAN); }
};

/// The quantity that validation measures. Runs are compared, and the best weights chosen, by it.
struct Metric {
  std::string name = "val_loss";
  bool less_is_better = true;
  template <class Visitor>
  void visit(Visitor& v) {
    v("name", name, "name of its field in records");
    v("less_is_better", less_is_better, "true if lower values are better");
  }
  bool operator==(const Metric&) const = default;
  bool is_better(double a, double b) const { return less_is_better ? a < b : a > b; }
  bool is_loss() const { return name == "val_loss"; }
  /// The word that follows "validation" in text for people: "loss", "accuracy".
  std::string noun() const { return name.starts_with("val_") ? name.substr(4) : name; }
  const char* best() const { return less_is_better ? "lowest" : "highest"; }
};

/// Returns true if a metric may have this name, which becomes a field of records and part of headings: up to 40 small
/// letters, digits and _, different from the other fields of records with the metric.
bool is_metric_name(std::string_view name);

struct LayerRecord {
  int64_t heads = 0, kv_heads = 0, head_dim = 0, ffn_width = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("heads", heads, "query heads");
    v("kv_heads", kv_heads, "key/value heads; 0: as many as query heads");
    v("head_dim", head_dim, "width of a head");
    v("ffn_width", ffn_width, "hidden width of the feed-forward part");
  }
  bool operator==(const LayerRecord&) const = default;
};

/// The machine, recorded at every start.
struct MachineRecord {
  std::string version, isa;
  std::optional<int64_t> threads;
  std::string cpu, device;
  std::optional<double> peak_gflops;
  template <class Visitor>
  void visit(Visitor& v) {
    v("version", version, "version of prism");
    v("isa", isa, "instruction set of the kernels");
    v("threads", threads, "number of threads");
    v("cpu", cpu, "name of the CPU");
    v("device", device, "LibTorch's name of the device");
    v("peak_gflops", peak_gflops, "the CPU's limit, measured at start-up; absent on other devices");
  }
};

/// The first record: the model, its data and its recipe in short.
struct StartRecord {
  static constexpr const char* kKind = "run";
  int64_t prism_format = 1;
  std::string name, schedule;
  std::optional<int64_t> parameters, flops_per_token, vocab_size, d_model, context;
  std::vector<LayerRecord> layers;
  std::optional<int64_t> seed;
  TrainingCount total;
  std::string dtype;
  std::optional<Metric> metric;
  std::optional<std::string> tokenizer, validation;
  MachineRecord machine;
  template <class Visitor>
  void visit(Visitor& v) {
    v("prism_format", prism_format, "version of the records");
    v("name", name, "name of the run, from the recipe");
    v("schedule", schedule, "head schedule, heads x layers");
    v("parameters", parameters, "number of trained parameters");
    v("flops_per_token", flops_per_token, "FLOPs of a forward pass per token");
    v("vocab_size", vocab_size, "vocabulary size of the model");
    v("d_model", d_model, "width of the residual stream");
    v("context", context, "tokens per window");
    v("layers", layers, "the layers, first to last");
    v("seed", seed, "seed of initial weights and data order");
    v("total_tokens", total.tokens, "tokens that the whole run trains on");
    v("total_examples", total.examples, "examples that the whole run of a classifier trains on");
    v("dtype", dtype, "dtype of matrix products");
    v("metric", metric, "what validation measures; absent: val_loss, less is better");
    v("tokenizer", tokenizer, "fingerprint of the tokenizer of the data");
    v("validation", validation, "fingerprint of the validation data, and how much of it is used");
    machine.visit(v);
  }
};

struct ResumeRecord : MachineRecord {
  static constexpr const char* kKind = "resume";
};

/// Means since the previous record of this kind.
struct TrainRecord {
  static constexpr const char* kKind = "train";
  double loss = NAN, learning_rate = NAN, grad_norm = NAN;
  TrainingRate rate;
  std::optional<double> peak_share, wait_share;
  std::optional<double> auxiliary_loss = {};
  std::optional<std::vector<double>> head_share = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("loss", loss, "mean over the steps, nats per token or per example");
    v("learning_rate", learning_rate, "learning rate of the last step");
    v("grad_norm", grad_norm, "gradient norm of the last step, before clipping");
    v("tokens_per_s", rate.tokens_per_s, "tokens per second of training steps alone");
    v("examples_per_s", rate.examples_per_s, "the same in examples, of classifiers");
    v("peak_share", peak_share, "share of the CPU's limit, 0..1");
    v("wait_share", wait_share, "share of time that threads waited for a core, 0..1; above 0.1 the cores were busy");
    v("auxiliary_loss", auxiliary_loss,
      "mean loss that layers and a skip head add, not part of loss; absent if they add none");
    v("head_share", head_share, "mean share of heads s of each layer; absent without head budgets");
  }
};

struct EvalRecord {
  static constexpr const char* kKind = "eval";
  std::string metric = "val_loss";  ///< the name of the run's metric
  double value = NAN;
  TrainingCount measured;
  std::optional<double> val_loss;
  std::optional<std::vector<double>> head_share = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v(metric.c_str(), value, "the run's metric");
    v("val_tokens", measured.tokens, "validation tokens that it was measured on");
    v("val_examples", measured.examples, "validation examples that it was measured on");
    if (metric != "val_loss") v("val_loss", val_loss, "validation loss beside the metric, nats");
    v("head_share", head_share, "mean share of heads s of each layer; absent without head budgets");
  }
};

/// The attention entropy of one layer.
struct LayerEntropy {
  int64_t layer = 0, heads = 0;
  double entropy = NAN;
  std::vector<double> head_entropies;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("heads", heads, "query heads");
    v("entropy", entropy, "mean entropy over heads, in nats");
    v("head_entropies", head_entropies, "entropy of each head, in nats");
  }
};

/// The residual stream before one layer, and the dead units of its feed-forward part.
struct LayerActivations {
  int64_t layer = 0;
  double residual_rms = NAN;
  std::vector<double> dead_units;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer,
      "layer, counted from 0; the number of layers stands for the input of the language-model head, before its norm");
    v("residual_rms", residual_rms, "root mean square of the residual stream before the layer");
    v("dead_units", dead_units,
      "for each hidden layer of the feed-forward part: share of units that were 0 for every token");
  }
};

struct ParameterUpdate {
  std::string name;
  double gradient = NAN, weight = NAN, update = NAN;
  template <class Visitor>
  void visit(Visitor& v) {
    v("name", name, "name in the model's file");
    v("gradient", gradient, "norm of its gradient, before clipping");
    v("weight", weight, "norm of its values, before the update");
    v("update", update, "norm of the optimizer's update divided by the norm of the values; 0 if the values are 0");
  }
};

/// Diagnostics of one training step.
struct StepReport {
  std::vector<LayerEntropy> entropy;
  std::vector<LayerActivations> activations;
  std::vector<ParameterUpdate> parameters;
  template <class Visitor>
  void visit(Visitor& v) {
    v("entropy", entropy, "entropy of attention, layer by layer");
    v("activations", activations, "activations, layer by layer, and the input of the language-model head");
    v("parameters", parameters, "parameters in the order of the model's file");
  }
};

struct DiagnosticsRecord {
  static constexpr const char* kKind = "diagnostics";
  double loss = NAN, step_ms = NAN, looked_ms = NAN;
  StepReport report;
  template <class Visitor>
  void visit(Visitor& v) {
    v("loss", loss, "loss of the step, nats per token or per example");
    v("step_ms", step_ms, "milliseconds of the step without diagnostics");
    v("looked_ms", looked_ms, "milliseconds of the diagnostics");
    report.visit(v);
  }
};

struct WarningRecord {
  static constexpr const char* kKind = "warning";
  std::string sign, text;
  template <class Visitor>
  void visit(Visitor& v) {
    v("sign", sign, "sign of trouble: loss, residual, update, or entropy and the layer");
    v("text", text, "what goes wrong and what usually fixes it");
  }
};

struct SampleRecord {
  static constexpr const char* kKind = "sample";
  std::string prompt;
  std::optional<double> temperature;
  std::string text;
  template <class Visitor>
  void visit(Visitor& v) {
    v("prompt", prompt, "text that the model continues");
    v("temperature", temperature, "sampling temperature");
    v("text", text, "the continuation");
  }
};

/// The last record of a run that stopped at a value that is not finite.
struct DivergedRecord {
  static constexpr const char* kKind = "diverged";
  std::string place;
  template <class Visitor>
  void visit(Visitor& v) {
    v("place", place, "where the first value that is not finite was found; empty: a second search found none");
  }
};

/// The loss on a text that was scored as a whole.
struct TextLossRecord {
  static constexpr const char* kKind = "text_loss";
  std::string text;
  double nats = NAN;
  int64_t tokens = 0;
  std::optional<int64_t> bytes;
  std::vector<std::pair<double, int64_t>> documents;
  template <class Visitor>
  void visit(Visitor& v) {
    v("text", text, "name of the text");
    v("nats", nats, "loss of all tokens together, in nats");
    v("tokens", tokens, "predicted tokens of the text, instead of tokens trained on");
    v("bytes", bytes, "bytes of the text");
    v("documents", documents, "nats and tokens of each document");
  }
};

/// How a classifier labelled the examples of a split (evaluation/classification.h).
struct ClassificationRecord {
  static constexpr const char* kKind = "classification";
  std::string split;
  int64_t labelled = 0;
  double accuracy = NAN, balanced_accuracy = NAN, macro_f1 = NAN, loss = NAN;
  std::vector<std::vector<int64_t>> confusion, wrong;
  std::vector<double> head_share, kept_share;
  template <class Visitor>
  void visit(Visitor& v) {
    v("split", split, "split of the data: test, valid or train");
    v("labelled", labelled, "number of examples");
    v("accuracy", accuracy, "share of the examples that are labelled correctly");
    v("balanced_accuracy", balanced_accuracy, "mean recall of the classes");
    v("macro_f1", macro_f1, "mean F1 of the classes");
    v("loss", loss, "mean cross-entropy, nats per example");
    v("confusion", confusion, "examples of each class (rows) by predicted class (columns)");
    v("head_share", head_share, "mean share of heads s of each layer; empty without head budgets");
    v("kept_share", kept_share, "mean share of heads that were computed, k / H, of each layer");
    v("wrong", wrong, "the examples labelled wrongly: index, class and predicted class of each");
  }
};

struct LayerDistance {
  int64_t layer = -1, heads = 0, head_dim = 0;
  double distance = NAN, distance_sd = NAN;
  std::vector<double> head_distances;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("heads", heads, "query heads");
    v("head_dim", head_dim, "width of a head");
    v("distance", distance, "mean distance over heads, in tokens");
    v("distance_sd", distance_sd, "sample standard deviation over heads; 0 for a single one");
    v("head_distances", head_distances, "distance of each head, in tokens");
  }
};

/// How far back the attention of each layer looks (analysis/attention_distance.h).
struct AttentionDistance {
  static constexpr const char* kKind = "attention_distance";
  std::vector<LayerDistance> layers;
  int64_t sequences = 0, context = 0, queries = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layers", layers, "the layers, first to last");
    v("sequences", sequences, "number of sequences read");
    v("context", context, "tokens of the longest sequence");
    v("queries", queries, "number of queries averaged over, of all sequences together");
  }
};

/// The last record of a run that trained to its end.
struct EndRecord {
  static constexpr const char* kKind = "end";
  std::string metric = "val_loss";    ///< the name of the run's metric
  std::optional<double> value, best;  ///< std::nullopt if there was no validation data
  TrainingRate rate;
  std::optional<int64_t> peak_memory_bytes;
  template <class Visitor>
  void visit(Visitor& v) {
    v(metric.c_str(), value, "the run's metric, measured last");
    v(("best_" + metric).c_str(), best, "the metric's best value");
    v("tokens_per_s", rate.tokens_per_s, "tokens per second of training steps, over the whole run");
    v("examples_per_s", rate.examples_per_s, "the same in examples, of classifiers");
    v("peak_memory_bytes", peak_memory_bytes, "peak memory of the process");
  }
};

}  // namespace prism
