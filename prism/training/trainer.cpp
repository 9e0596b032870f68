#include "prism/training/trainer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/peak.h"
#include "prism/kernels/simd/isa.h"
#include "prism/training/fixed_parameters.h"
#include "prism/training/memory.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Returns true if an action due every `every` tokens or examples is due after this step, which ends at `trained`.
bool is_due(int64_t every, int64_t trained, int64_t of_step) {
  return every > 0 && trained / every > (trained - of_step) / every;
}

/// Returns true if a step gets diagnostics.
bool is_diagnosed(int64_t every, int64_t step) {
  if (every == 0) return false;
  const bool power_of_four =
      std::has_single_bit(static_cast<uint64_t>(step)) && std::countr_zero(static_cast<uint64_t>(step)) % 2 == 0;
  return step % every == 0 || (step < every && power_of_four);
}

/// Drops the sign that some processors give a NaN.
double unsigned_nan(double value) {
  return std::isnan(value) ? std::abs(value) : value;
}

/// What the data of a step are called in messages.
const char* sequences_noun(const Recipe& recipe) {
  return unit_of(recipe) == TrainingUnit::tokens ? "windows" : "examples";
}

TrainResult result_of(const RunState& state, const Metric& metric, bool finished) {
  return {finished, state.step, state.trained, metric, state.last_metric};
}

/// Checks that a checkpoint belongs to a run. @param state  read from the checkpoint. @param now  of the run that goes
/// on.
void check_restored(const RunState& state, const RunState& now, const Recipe& recipe, const RunFolder& folder,
                    const fs::path& checkpoint) {
  PRISM_CHECK(state.recipe_fingerprint.empty() || state.recipe_fingerprint == now.recipe_fingerprint, "train",
              "expected the recipe that the run began with; found {} changed; restore it, or start a new run, with "
              "init to begin from this run's weights.",
              (folder.path() / kRunRecipeName).string());
  const char* unit = noun_of(unit_of(recipe));
  PRISM_CHECK(
      state.step <= total_steps(recipe) && state.trained == state.step * step_size(recipe) &&
          state.windows == state.step * step_sequences(recipe),
      "train",
      "expected a checkpoint of this run, which has {} steps of {} {} each; found step {}, {} {}, {} {} read in "
      "{}; {}.",
      total_steps(recipe), step_size(recipe), unit, state.step, state.trained, unit, state.windows,
      sequences_noun(recipe), checkpoint.string(), folder.way_round_last());
  PRISM_CHECK(checkpoint == folder.checkpoints().path(CheckpointKind::step, state.step), "train",
              "expected the state of the checkpoint {}; found that of step {} in it; {}.", checkpoint.string(),
              state.step, folder.way_round_last());
  check_tensors(checkpoint, state);
  PRISM_CHECK(state.data_fingerprint == now.data_fingerprint, "train",
              "expected the data that the run began with ({}); found different data ({}) in {}; restore them or start "
              "a new run.",
              state.data_fingerprint, now.data_fingerprint, recipe.data.folder);
  PRISM_CHECK(state.dtype == now.dtype, "train",
              "expected {}, the dtype that the run began with; found {} for auto on this machine; resume it on a CPU "
              "like the first one.",
              state.dtype, now.dtype);
}

/// FLOPs of training per token or example: the products of the forward pass, and twice as many for gradients of inputs
/// and weights, without those of fixed weights.
double training_flops(const Objective& objective) {
  int64_t fixed = 0;
  for (const auto& entry : objective.weights())
    if (is_fixed(entry)) fixed += 2 * entry.weight.numel() * entry.products();
  return (3 - static_cast<double>(fixed) / static_cast<double>(objective.flops_per_token())) *
         objective.flops_per_unit();
}

/// What the loss of each batch of a step is divided by, so that their sum is the mean over all labels of the step.
std::vector<double> loss_divisors(Objective& objective, int64_t first, int64_t batches) {
  if (batches == 1) return {1};
  std::vector<double> divisors;
  double all = 0;
  for (int64_t i = 0; i < batches; ++i) all += divisors.emplace_back(static_cast<double>(objective.labels(first + i)));
  // A batch without labels has a loss of 0.
  for (auto& divisor : divisors) divisor = divisor > 0 ? all / divisor : 1;
  return divisors;
}

}  // namespace

Trainer::Trainer(Recipe recipe, fs::path run, std::unique_ptr<Objective> objective, TrainMachine machine)
    : recipe_(std::move(recipe)), objective_(std::move(objective)), machine_(machine), folder_(std::move(run)) {}

std::vector<std::string> Trainer::prepare(Start start) {
  if (start != Start::resume) folder_.check_unused(start);
  if (start == Start::restart) {
    folder_.check_is_apart("init", recipe_.init);
    folder_.check_is_apart("init_embedding", recipe_.init_embedding);
  }
  check_options(recipe_);
  objective_->open(recipe_);
  PRISM_ASSERT(is_metric_name(objective_->metric().name), "train", "a metric named {}", objective_->metric().name);
  check_training(recipe_);
  save_steps_ = save_steps(recipe_.train.save_steps, total_steps(recipe_));
  auto notes = objective_->notes();
  const auto type = find_compute_type(recipe_.train.dtype, machine_.device);
  objective_->make_model(recipe_, type);
  fix_parameters(objective_->weights(), recipe_.train.fixed);
  if (machine_.device.is_cpu()) check_training_memory(objective_->weights(), recipe_, type);
  if (start != Start::resume) objective_->initialise(recipe_);
  move_weights(objective_->weights(), machine_.device);
  folder_.claim(start);  // after all checks, so that a refused recipe leaves no files

  optimizer_ = make_optimizer(objective_->weights(), recipe_.train.optimizer_options, type);
  speed_ = TrainingSpeed(training_flops(*objective_),
                         machine_.device.is_cpu()
                             ? std::optional(measure_peak(machine_.threads, type == torch::kBFloat16).gflops)
                             : std::nullopt);
  state_.recipe_fingerprint = recipe_fingerprint(
      start == Start::resume ? read_json((folder_.path() / kRunRecipeName).string()) : fields_to_json(recipe_));
  state_.data_fingerprint = objective_->fingerprint();
  state_.dtype = compute_type_name(type);
  state_.isa = isa_name(current_isa());
  state_.threads = machine_.threads;
  watch_ = DivergenceWatch(objective_->weights());
  if (start == Start::resume && last_checkpoint(folder_.path())) {
    const auto more = restore();
    notes.insert(notes.end(), more.begin(), more.end());
    return notes;
  }
  if (start == Start::resume) {
    PRISM_CHECK(!is_finished(folder_.path()), "train",
                "expected an unfinished run in {}; found a finished one with records but no checkpoints; choose "
                "another --out to train it again.",
                folder_.path().string());
    notes.push_back(
        fmt::format("{} has no checkpoint to resume from; it starts again at step 0", folder_.path().string()));
    objective_->initialise(recipe_);
  }
  begin();
  return notes;
}

void Trainer::begin() {
  objective_->set_step(0);
  write_file(folder_.path() / kRunRecipeName, to_text(fields_to_json(recipe_), 2) + "\n");
  recorder_.open(folder_.path(), 0, recipe_.train.tensorboard ? std::optional<int64_t>(0) : std::nullopt);
  sync_folder(folder_.path());
  record_run();
}

std::vector<std::string> Trainer::restore() {
  const auto folder = *last_checkpoint(folder_.path());
  const RunState now = state_;
  try {
    state_ = load_run_state(folder);
    objective_->load(folder);
    load_optimizer(folder, optimizer_->state());
  } catch (const InputError& error) {
    throw InputError("train", fmt::format("expected a complete checkpoint in {}; found a damaged one ({}); {}.",
                                          folder.string(), error.reason(), folder_.way_round_last()));
  }
  check_restored(state_, now, recipe_, folder_, folder);
  state_.recipe_fingerprint = now.recipe_fingerprint;
  std::vector<std::string> notes;
  if (state_.threads != now.threads)
    notes.push_back(
        fmt::format("the run began with {} threads; with {} its last digits may differ", state_.threads, now.threads));
  if (state_.isa != now.isa)
    notes.push_back(fmt::format("the run began with kernels for {}; with those for {} its last digits may differ",
                                state_.isa, now.isa));
  const auto records = folder_.path() / kRunRecordsName;
  PRISM_CHECK(is_there(records), "train",
              "expected the records of the run at {}; found nothing; restore the file, or train in another folder.",
              records.string());
  const auto events = read_run_events(folder_.path(), state_.records_bytes);
  // After the last check. Checkpoints of later steps, which this run will train again, must not count as its own.
  for (const auto kind : {CheckpointKind::best, CheckpointKind::weights})
    folder_.checkpoints().discard_after(kind, state_.step);
  optimizer_->set_steps(state_.step);
  objective_->set_step(state_.step);
  prune_due_ = true;
  const bool done = is_done(recipe_, state_);
  recorder_.open(folder_.path(), state_.records_bytes,
                 recipe_.train.tensorboard && !done ? std::optional(state_.step + 1) : std::nullopt);
  if (done) return notes;
  recall_warnings(events);
  record(ResumeRecord{machine_record()});
  return notes;
}

TrainResult Trainer::run() {
  const char* unit = noun_of(unit_of(recipe_));
  progress_ = std::make_unique<Progress>("train", training_size(recipe_), fmt::format(" {}", unit), state_.trained);
  timer_.restart();
  speed_.begin(state_.trained, state_.step_seconds);
  if (is_done(recipe_, state_)) {
    progress_->finish(fmt::format("train: {} is done, {} steps", folder_.path().string(), state_.step));
    return result_of(state_, objective_->metric(), /*finished=*/true);
  }
  while (state_.step < total_steps(recipe_) || state_.evaluation_pending) {
    if (stop_signal() != 0 || !advance()) return stop();
  }
  folder_.checkpoints().prune(CheckpointKind::step, recipe_.train.keep_last);
  progress_->finish(fmt::format(
      "train: {} steps, {} {} in {}, {:.0f} {}/s, {} {}", state_.step,
      short_number(static_cast<double>(state_.trained)), unit, short_duration(state_.seconds + timer_.seconds()),
      static_cast<double>(state_.trained) / state_.step_seconds, unit, objective_->metric().noun(),
      !state_.last_metric ? "not validated" : fmt::format("{:.4f} (validation)", *state_.last_metric)));
  return result_of(state_, objective_->metric(), /*finished=*/true);
}

TrainResult Trainer::stop() {
  if (last_checkpoint(folder_.path()) != folder_.checkpoints().path(CheckpointKind::step, state_.step))
    save_checkpoint();
  progress_->finish(fmt::format("train: stopped at step {}, saved; resume with: prism train --out {} --resume",
                                state_.step, shell_word(folder_.path().string())));
  return result_of(state_, objective_->metric(), /*finished=*/false);
}

bool Trainer::advance() {
  if (!state_.evaluation_pending && !train_step()) return false;
  state_.evaluation_pending = true;
  return finish_step();
}

bool Trainer::train_step() {
  const Timer timer;
  const auto& train = recipe_.train;
  const auto loss = forward_backward();
  if (!loss) {
    clear_gradients(objective_->weights());
    return false;
  }
  const double norm = optimizer_->gradient_norm();
  if (!std::isfinite(*loss) || !std::isfinite(norm)) fail_not_finite(*loss, norm);
  // Only now are the weights of the checkpoint before this step known to be good.
  if (std::exchange(prune_due_, false)) folder_.checkpoints().prune(CheckpointKind::step, train.keep_last);

  std::optional<StepDiagnostics> diagnostics;
  Timer looking;
  if (is_diagnosed(train.diagnose_steps, state_.step + 1)) {
    diagnostics.emplace(*objective_, recipe_.model, state_.step * train.accumulate);
    recorder_.keep_parameters(state_.step + 1, objective_->weights());
  }
  double looked_seconds = looking.seconds();
  optimizer_->step(learning_rate_of(recipe_).at(static_cast<double>(state_.trained + step_size(recipe_))), norm);
  objective_->set_step(++state_.step);
  state_.trained += step_size(recipe_);
  state_.windows += step_sequences(recipe_);
  const double step_seconds = timer.seconds() - looked_seconds;
  state_.step_seconds += step_seconds;
  state_.loss_sum += *loss;
  ++state_.loss_count;
  last_ = {*loss, norm};
  show_progress(state_.trained);
  if (state_.step % train.log_steps == 0 || state_.step == total_steps(recipe_)) record_training();
  warn(watch_.look(*loss));
  if (!diagnostics) return true;
  looking.restart();
  const auto report = diagnostics->finish();
  looked_seconds += looking.seconds();
  record(DiagnosticsRecord{last_.loss, 1e3 * step_seconds, 1e3 * looked_seconds, report});
  warn(watch_.look(report));
  return true;
}

std::optional<double> Trainer::forward_backward() {
  const auto& train = recipe_.train;
  const double progress = static_cast<double>(state_.step) / static_cast<double>(total_steps(recipe_));
  double sum = 0;
  std::optional<double> added;
  std::vector<double> head_share;
  const auto divisors = loss_divisors(*objective_, state_.step * train.accumulate, train.accumulate);
  for (int64_t i = 0; i < train.accumulate; ++i) {
    if (i > 0 && stop_signal() != 0) return std::nullopt;
    const int64_t batch = state_.step * train.accumulate + i;
    const double divisor = divisors[static_cast<size_t>(i)];
    Auxiliary auxiliary(progress);
    auto loss = objective_->loss(batch, objective_->forward(batch, {.auxiliary = &auxiliary}));
    sum += loss.item<double>() / divisor;
    loss = loss / divisor;
    if (auxiliary.loss().defined()) {
      loss = loss + auxiliary.loss() / static_cast<double>(train.accumulate);
      added = added.value_or(0) + auxiliary.loss().item<double>();
    }
    add_scaled(head_share, objective_->head_share(), 1.0 / static_cast<double>(train.accumulate));
    loss.backward();
    if (i + 1 < train.accumulate) show_progress(state_.trained + (i + 1) * step_size(recipe_) / train.accumulate);
  }
  const auto parts = static_cast<double>(train.accumulate);
  if (added && std::isfinite(*added)) state_.auxiliary_sum = state_.auxiliary_sum.value_or(0) + *added / parts;
  add_scaled(state_.head_share_sum, head_share, 1);
  if (added && !std::isfinite(*added)) return *added;
  return sum;
}

void Trainer::show_progress(int64_t trained) {
  if (last_.loss == 0) return progress_->update(trained, fmt::format("step {}", state_.step + 1));
  const auto share = speed_.peak_share(speed_.since_begin(state_.trained, state_.step_seconds));
  progress_->update(trained, fmt::format("step {} | loss {:.3f}{}", state_.step, last_.loss,
                                         share ? fmt::format(" | {:.0f}% of the CPU", 100 * *share) : ""));
}

void Trainer::fail_not_finite(double loss, double norm) {
  const int64_t first = state_.step * recipe_.train.accumulate;
  const auto place = place_of_divergence(*objective_, recipe_.model, first, recipe_.train.accumulate);
  // Record the losses since the last train record, so that the curve reaches the last finite loss.
  if (state_.trained > speed_.logged()) record_training();
  fail_diverged(
      state_.step + 1, place,
      fmt::format("expected a finite loss; found loss {} and gradient norm {} at step {}, {} {}-{} of the data{}",
                  unsigned_nan(loss), unsigned_nan(norm), state_.step + 1, sequences_noun(recipe_), state_.windows,
                  state_.windows + step_sequences(recipe_) - 1,
                  place.empty() ? "" : fmt::format(", the first value that is not finite in {}", place)));
}

void Trainer::fail_diverged(int64_t step, const std::string& place, const std::string& sentence) {
  recorder_.keep(
      {{step, {unit_of(recipe_), state_.trained}, state_.seconds + timer_.seconds()}, DivergedRecord{place}});
  recorder_.sync();
  const auto& layers = recipe_.model.layers;
  const bool has_norms =
      std::all_of(layers.begin(), layers.end(), [](const auto& layer) { return layer.norm != "none"; });
  throw FailedError(
      "train", fmt::format("{}; {}; lower train.learning_rate{}.", sentence, folder_.way_back(state_.step),
                           has_norms ? " or lengthen the warm-up" : ", lengthen the warm-up or set model.norm to rms"));
}

void Trainer::check_last_step() {
  const torch::NoGradGuard no_gradients;
  const int64_t batch = (state_.step - 1) * recipe_.train.accumulate;
  const auto loss = objective_->loss(batch, objective_->forward(batch, {})).item<double>();
  if (std::isfinite(loss)) return;
  fail_diverged(
      state_.step, place_of_divergence(*objective_, recipe_.model, batch, 1),
      fmt::format("expected a finite loss after the last step, {}; found {}", state_.step, unsigned_nan(loss)));
}

bool Trainer::finish_step() {
  const auto& train = recipe_.train;
  const bool last = state_.step == total_steps(recipe_);
  const auto due = [&](int64_t every_tokens, double every_epochs) {
    return last || is_due(interval_of(recipe_, every_tokens, every_epochs), state_.trained, step_size(recipe_));
  };
  if (last) check_last_step();
  // Before anything of this step is recorded, because a signal may interrupt it and --resume then repeats it.
  std::optional<std::vector<RunRecord>> finals = std::vector<RunRecord>();
  try {
    if (last) finals = objective_->measure_finals();
  } catch (const std::exception&) {
    save_checkpoint();  // training is done; --resume repeats the measurements
    throw;
  }
  if (!finals || (objective_->has_validation() && due(train.eval_every_tokens, train.eval_every_epochs) && !evaluate()))
    return false;
  const auto save = [&](const fs::path& folder) { objective_->save(folder); };
  if (std::binary_search(save_steps_.begin(), save_steps_.end(), state_.step))
    folder_.checkpoints().save(CheckpointKind::weights, state_.step, save);
  for (const auto& measured : *finals) record(measured);
  if (due(train.sample_every_tokens, 0))
    for (const auto& sample : objective_->samples()) record(sample);
  if (last) record_end();
  state_.evaluation_pending = false;
  if (due(train.checkpoint_every_tokens, train.checkpoint_every_epochs)) save_checkpoint();
  return true;
}

bool Trainer::evaluate() {
  const auto validation = objective_->validate();
  if (!validation) return false;
  const double value = validation->value;
  const Metric metric = objective_->metric();
  if (!std::isfinite(value) || !std::isfinite(validation->loss.value_or(0)))
    fail_diverged(state_.step, "the validation " + metric.noun(),
                  fmt::format("expected a finite validation {}; found {} after step {}, {} up to {} of the data",
                              metric.noun(), unsigned_nan(validation->loss.value_or(value)), state_.step,
                              sequences_noun(recipe_), state_.windows - 1));
  state_.last_metric = value;
  record(EvalRecord{
      metric.name, value, {unit_of(recipe_), validation->measured}, validation->loss, validation->head_share});
  if (state_.best_metric && !metric.is_better(value, *state_.best_metric)) return true;
  state_.best_metric = value;
  folder_.checkpoints().save(CheckpointKind::best, state_.step,
                             [&](const fs::path& folder) { objective_->save(folder); });
  folder_.checkpoints().prune(CheckpointKind::best, 1);
  return true;
}

void Trainer::save_checkpoint() {
  RunState state = state_;
  state.seconds = state_.seconds + timer_.seconds();
  state.records_bytes = recorder_.sync();
  const auto& trend = watch_.trend();
  state.mean_loss = trend.mean;
  state.least_loss = trend.least;
  state.loss_variance = trend.variance;
  folder_.checkpoints().save(CheckpointKind::step, state_.step, [&](const fs::path& folder) {
    objective_->save(folder);
    save_run_state(folder, state, optimizer_->state());
  });
  folder_.checkpoints().prune(CheckpointKind::step, recipe_.train.keep_last + 1);
  prune_due_ = true;
}

}  // namespace prism
