// What a trainer records: the run and its machine, steps, diagnostics, samples, the end; for TensorBoard too.
#include <fmt/format.h>

#include "prism/attention/head_schedule.h"
#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/simd/isa.h"
#include "prism/models/cost.h"
#include "prism/training/trainer.h"

namespace prism {

void Trainer::recall_warnings() {
  watch_.recall(LossTrend{state_.mean_loss, state_.least_loss, state_.loss_variance});
  for (const auto& record : read_records(run_ / kRunRecordsName)) {
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

void Trainer::open_board(int64_t first_step) {
  if (recipe_.train.tensorboard) board_.emplace(run_, first_step);
}

void Trainer::keep(const Json& record) {
  records_->write(record);
  if (board_) board_->add(record);
}

Json Trainer::record(const char* kind) const {
  return {{"kind", kind}, {"step", state_.step}, {"tokens", state_.tokens}, {"seconds", seconds()}};
}

void Trainer::write_run_record() {
  const auto cost = model_cost(recipe_.model);
  Json layers = Json::array();
  for (const auto& layer : recipe_.model.layers)
    layers.push_back({{"heads", layer.heads},
                      {"kv_heads", layer.kv_heads},
                      {"head_dim", layer.head_dim},
                      {"ffn_width", layer.ffn.width}});
  Json json = record("run");
  json.update({{"prism_format", 1},
               {"name", recipe_.name},
               {"schedule", format_head_schedule(heads_of(recipe_.model))},
               {"parameters", cost.parameters},
               {"flops_per_token", cost.flops_per_token},
               {"vocab_size", recipe_.model.vocab_size},
               {"d_model", recipe_.model.d_model},
               {"context", recipe_.model.context},
               {"layers", layers},
               {"seed", recipe_.seed},
               {"total_tokens", total_steps() * step_tokens(recipe_)},
               {"dtype", compute_type_name(decoder_->compute_type())}});
  if (valid_data_)
    json.update(
        {{"tokenizer", valid_data_->tokenizer()},
         {"validation", fmt::format("{:016x}, {} tokens", valid_data_->fingerprint(), recipe_.train.eval_tokens)}});
  json.update(machine());
  keep(json);
}

void Trainer::write_resume_record() {
  Json json = record("resume");
  json.update(machine());
  keep(json);
}

Json Trainer::machine() const {
  Json json = {{"version", PRISM_VERSION},
               {"isa", isa_name(current_isa())},
               {"threads", threads_},
               {"cpu", cpu_name()},
               {"device", decoder_->device().str()}};
  if (peak_gflops_) json["peak_gflops"] = *peak_gflops_;
  return json;
}

void Trainer::record_diagnostics(const StepReport& report, double step_seconds, double looked_seconds) {
  Json json = record("diagnostics");
  json["loss"] = last_loss_;
  json["step_ms"] = 1e3 * step_seconds;
  json["looked_ms"] = 1e3 * looked_seconds;
  json.update(fields_to_json(report));
  keep(json);
  warn(watch_.look(report));
}

void Trainer::warn(const std::vector<DivergenceWarning>& warnings) {
  for (const auto& warning : warnings) {
    progress_->note(fmt::format("train: step {}: {}", state_.step, warning.text));
    Json json = record("warning");
    json.update({{"sign", warning.sign}, {"text", warning.text}});
    keep(json);
  }
}

std::optional<double> Trainer::peak_share(double tokens_per_s) const {
  if (!peak_gflops_) return std::nullopt;
  return tokens_per_s * flops_per_token_ / (*peak_gflops_ * 1e9);
}

void Trainer::record_training() {
  const double elapsed = state_.step_seconds - logged_seconds_;
  const double tokens_per_s = static_cast<double>(state_.tokens - logged_tokens_) / elapsed;
  Json json = record("train");
  json.update({{"loss", state_.loss_sum / static_cast<double>(state_.loss_count)},
               {"learning_rate", learning_rate_at(state_.tokens)},
               {"grad_norm", last_norm_},
               {"tokens_per_s", tokens_per_s}});
  if (const auto share = peak_share(tokens_per_s)) json["peak_share"] = *share;
  keep(json);
  logged_tokens_ = state_.tokens;
  logged_seconds_ = state_.step_seconds;
  state_.loss_sum = 0;
  state_.loss_count = 0;
}

void Trainer::record_samples() {
  if (!tokenizer_) return;
  for (const auto& prompt : recipe_.train.sample_prompts)
    for (const double temperature : sample_temperatures(recipe_.train.sample_temperature)) {
      const auto sample = generate(decoder_, *tokenizer_, prompt, sample_options(prompt, temperature));
      Json json = record("sample");
      json.update({{"prompt", prompt}, {"temperature", temperature}, {"text", sample.text}});
      keep(json);
    }
}

void Trainer::record_divergence(int64_t step, const std::string& place) {
  Json json = record("diverged");
  json["step"] = step;
  json["place"] = place;
  keep(json);
  records_->sync();
}

void Trainer::record_end() {
  Json json = record("end");
  if (state_.last_val_loss >= 0)
    json.update({{"val_loss", state_.last_val_loss}, {"best_val_loss", state_.best_val_loss}});
  json.update({{"tokens_per_s", static_cast<double>(state_.tokens) / state_.step_seconds},
               {"peak_memory_bytes", peak_memory_bytes()}});
  keep(json);
}

}  // namespace prism
