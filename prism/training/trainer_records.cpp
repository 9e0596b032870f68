// What a trainer records: the run and its machine, steps, warnings, the end.
#include <fmt/format.h>

#include "prism/attention/head_schedule.h"
#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/kernels/simd/isa.h"
#include "prism/training/trainer.h"

namespace prism {

void Trainer::recall_warnings() {
  watch_.recall(LossTrend{state_.mean_loss, state_.least_loss, state_.loss_variance});
  for (const auto& record : read_records(folder_.path() / kRunRecordsName)) {
    const auto kind = record.value("kind", "");
    if (kind == "warning") watch_.recall(record.value("sign", ""));
    if (kind != "diagnostics") continue;
    Json fields;
    for (const char* name : {"entropy", "activations", "parameters"})
      if (record.contains(name)) fields[name] = record[name];
    try {
      watch_.look(fields_from_json<StepReport>(fields, kRunRecordsName));
    } catch (const InputError&) {
      // A norm that was not finite is null there; the next report is as good.
    }
  }
}

Json Trainer::record(const char* kind) const {
  return {
      {"kind", kind}, {"step", state_.step}, {"tokens", state_.tokens}, {"seconds", state_.seconds + timer_.seconds()}};
}

void Trainer::record_run() {
  const auto& model = recipe_.model;
  Json layers = Json::array();
  for (const auto& layer : model.layers)
    layers.push_back({{"heads", layer.heads},
                      {"kv_heads", layer.kv_heads},
                      {"head_dim", layer.head_dim},
                      {"ffn_width", layer.ffn.width}});
  int64_t parameters = 0;
  for (const auto& entry : objective_->weights()) parameters += entry.weight.numel();
  Json json = record("run");
  json.update({{"prism_format", 1},
               {"name", recipe_.name},
               {"schedule", format_head_schedule(heads_of(model))},
               {"parameters", parameters},
               {"flops_per_token", objective_->flops_per_token()},
               {"vocab_size", model.vocab_size},
               {"d_model", model.d_model},
               {"context", model.context},
               {"layers", layers},
               {"seed", recipe_.seed},
               {"total_tokens", total_steps(recipe_) * step_tokens(recipe_)},
               {"dtype", state_.dtype}});
  json.update(objective_->description());
  json.update(machine_record());
  recorder_.keep(json);
}

Json Trainer::machine_record() const {
  Json json = {{"version", PRISM_VERSION},
               {"isa", isa_name(current_isa())},
               {"threads", machine_.threads},
               {"cpu", cpu_name()},
               {"device", machine_.device.str()}};
  if (const auto gflops = speed_.peak_gflops()) json["peak_gflops"] = *gflops;
  return json;
}

void Trainer::warn(const std::vector<DivergenceWarning>& warnings) {
  for (const auto& warning : warnings) {
    progress_->note(fmt::format("train: step {}: {}", state_.step, warning.text));
    Json json = record("warning");
    json.update({{"sign", warning.sign}, {"text", warning.text}});
    recorder_.keep(json);
  }
}

void Trainer::record_training() {
  const double tokens_per_s = speed_.log(state_.tokens, state_.step_seconds);
  Json json = record("train");
  json.update({{"loss", state_.loss_sum / static_cast<double>(state_.loss_count)},
               {"learning_rate", learning_rate_of(recipe_.train, total_steps(recipe_) * step_tokens(recipe_))
                                     .at(static_cast<double>(state_.tokens))},
               {"grad_norm", last_.norm},
               {"tokens_per_s", tokens_per_s}});
  if (const auto share = speed_.peak_share(tokens_per_s)) json["peak_share"] = *share;
  recorder_.keep(json);
  state_.loss_sum = 0;
  state_.loss_count = 0;
}

void Trainer::record_end() {
  Json json = record("end");
  if (state_.last_val_loss >= 0)
    json.update({{"val_loss", state_.last_val_loss}, {"best_val_loss", state_.best_val_loss}});
  json.update({{"tokens_per_s", static_cast<double>(state_.tokens) / state_.step_seconds},
               {"peak_memory_bytes", peak_memory_bytes()}});
  recorder_.keep(json);
}

}  // namespace prism
