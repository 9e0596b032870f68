// The records of a trainer: start, machine, steps, warnings and end.
#include <fmt/format.h>

#include "prism/attention/head_schedule.h"
#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/statistics.h"
#include "prism/kernels/simd/isa.h"
#include "prism/training/trainer.h"

namespace prism {

void Trainer::recall_warnings(const std::vector<RunEvent>& events) {
  watch_.recall(LossTrend{state_.mean_loss, state_.least_loss, state_.loss_variance});
  for (const auto& event : events) {
    if (const auto* warning = std::get_if<WarningRecord>(&event.record)) watch_.recall(warning->sign);
    if (const auto* diagnostics = std::get_if<DiagnosticsRecord>(&event.record)) watch_.look(diagnostics->report);
  }
}

void Trainer::record(RunRecord record) {
  recorder_.keep(
      {{state_.step, {unit_of(recipe_), state_.trained}, state_.seconds + timer_.seconds()}, std::move(record)});
}

void Trainer::record_run() {
  const auto& model = recipe_.model;
  StartRecord start;
  start.name = recipe_.name;
  start.schedule = format_head_schedule(heads_of(model));
  start.parameters = objective_->parameters();
  start.flops_per_token = objective_->flops_per_token();
  start.vocab_size = model.vocab_size;
  start.d_model = model.d_model;
  start.context = model.context;
  for (const auto& layer : model.layers)
    start.layers.push_back({layer.heads, layer.kv_heads, layer.head_dim, layer.ffn.width});
  start.seed = recipe_.seed;
  start.total = {unit_of(recipe_), training_size(recipe_)};
  start.dtype = state_.dtype;
  if (const auto metric = objective_->metric(); metric != Metric()) start.metric = metric;
  objective_->describe(start);
  start.machine = machine_record();
  record(std::move(start));
}

MachineRecord Trainer::machine_record() const {
  return {PRISM_VERSION, isa_name(current_isa()), machine_.threads,
          cpu_name(),    machine_.device.str(),   speed_.peak_gflops()};
}

void Trainer::warn(const std::vector<WarningRecord>& warnings) {
  for (const auto& warning : warnings) {
    progress_->note(fmt::format("train: step {}: {}", state_.step, warning.text));
    record(warning);
  }
}

void Trainer::record_training() {
  const double rate = speed_.log(state_.trained, state_.step_seconds);
  const auto wait_share = speed_.log_wait();
  if (speed_.is_first_busy(wait_share))
    progress_->note(fmt::format("train: step {}: {}, so this run's measured speed is unreliable", state_.step,
                                busy_text(*wait_share)));
  const auto count = static_cast<double>(state_.loss_count);
  std::optional<std::vector<double>> head_share;
  if (!state_.head_share_sum.empty()) add_scaled(head_share.emplace(), state_.head_share_sum, 1 / count);
  std::optional<double> auxiliary_loss;
  if (state_.auxiliary_sum) auxiliary_loss = *state_.auxiliary_sum / count;
  record(TrainRecord{.loss = state_.loss_sum / count,
                     .learning_rate = learning_rate_of(recipe_).at(static_cast<double>(state_.trained)),
                     .grad_norm = last_.norm,
                     .rate = {unit_of(recipe_), rate},
                     .peak_share = speed_.peak_share(rate),
                     .wait_share = wait_share,
                     .auxiliary_loss = auxiliary_loss,
                     .head_share = head_share});
  state_.loss_sum = 0;
  state_.loss_count = 0;
  state_.auxiliary_sum.reset();
  state_.head_share_sum.clear();
}

void Trainer::record_end() {
  record(EndRecord{.metric = objective_->metric().name,
                   .value = state_.last_metric,
                   .best = state_.best_metric,
                   .rate = {unit_of(recipe_), static_cast<double>(state_.trained) / state_.step_seconds},
                   .peak_memory_bytes = peak_memory_bytes()});
}

}  // namespace prism
