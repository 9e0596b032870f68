#include "prism/training/trainer.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "prism/checkpoint/model_folder.h"
#include "prism/core/error.h"
#include "prism/core/names.h"
#include "prism/core/stop.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/peak.h"
#include "prism/kernels/simd/isa.h"
#include "prism/models/batch.h"
#include "prism/models/cost.h"
#include "prism/training/validation.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "train";

void check_unused(const fs::path& run) {
  std::error_code code;
  if (!fs::is_directory(run, code)) return;  // make_folder() says what is wrong with anything else
  PRISM_CHECK(!fs::exists(run / kRunRecipeName), kOperation,
              "expected an unused folder; found a run in {}; go on with it by --resume, or choose another --out.",
              run.string());
  for (const auto& entry : fs::directory_iterator(run)) {
    const bool ours = entry.path().filename() == ".lock" || is_temporary_of(entry.path(), run / kRunRecipeName);
    PRISM_CHECK(ours, kOperation, "expected an empty folder; found {} in {}; choose another --out.",
                entry.path().filename().string(), run.string());
  }
}

void check_same_tokenizer(const TokenDataset& a, const TokenDataset& b) {
  PRISM_CHECK(a.tokenizer() == b.tokenizer(), kOperation,
              "data: expected tokens of one tokenizer; found {} in {} and {} in {}; tokenize both with one.",
              a.tokenizer(), a.folder().string(), b.tokenizer(), b.folder().string());
}

/// Names the tokens that a run is trained and validated on, so that a resumed run notices other ones.
std::string fingerprint_of(const std::vector<std::unique_ptr<TokenDataset>>& train, const TokenDataset* valid) {
  std::string text;
  for (const auto& part : train)
    text += fmt::format("{}-{}-{:016x}-", part->tokenizer(), part->size(), part->fingerprint());
  return fmt::format("{}{:016x}", text, valid != nullptr ? valid->fingerprint() : 0);
}

}  // namespace

Trainer::Trainer(Recipe recipe, fs::path run, int threads, Start start, const torch::Device& device)
    : recipe_(std::move(recipe)), run_(std::move(run)), threads_(threads), checkpoints_(run_) {
  PRISM_CHECK(!run_.empty(), kOperation, "expected a folder for the run; found an empty name; name one by --out.");
  if (start == Start::fresh) check_unused(run_);
  check_train_options(recipe_.train);
  open_data();
  complete(recipe_.model);
  check_training(recipe_);
  save_steps_ = save_steps(recipe_.train.save_steps, total_steps());
  check_samples();
  check_final(recipe_.final, tokenizer_ ? &*tokenizer_ : nullptr, valid_windows_.get());
  check_memory(recipe_.model, 16);  // float32 weight, gradient and two moments
  decoder_ = Decoder(recipe_.model);
  decoder_->set_compute_type(find_compute_type(recipe_.train.dtype, device));
  decoder_->set_recompute(recipe_.train.recompute);
  if (start == Start::fresh) initialise();
  decoder_->to(device);
  claim_folder(start);  // only now: a recipe that is refused leaves nothing behind

  optimizer_ = make_optimizer(decoder_, recipe_.train.optimizer_options);
  flops_per_token_ = 3.0 * static_cast<double>(model_cost(recipe_.model).flops_per_token);
  if (device.is_cpu()) peak_gflops_ = measure_peak(threads_, decoder_->compute_type() == torch::kBFloat16).gflops;

  const auto last = last_checkpoint(run_);
  if (start == Start::resume && last) {
    restore();
  } else {
    if (start == Start::resume) {
      PRISM_CHECK(!is_finished(run_), kOperation,
                  "expected a run to go on with in {}; found one that is done, of which the records alone were kept; "
                  "choose another --out to train it again.",
                  run_.string());
      notes_.push_back(fmt::format("{} has no checkpoint to go on from; it starts again at step 0", run_.string()));
      initialise();
    }
    state_.data_fingerprint = fingerprint_of(train_data_, valid_data_.get());
    state_.dtype = compute_type_name(decoder_->compute_type());
    state_.isa = isa_name(current_isa());
    state_.threads = threads_;
    write_file(run_ / kRunRecipeName, to_text(fields_to_json(recipe_), 2) + "\n");
    records_ = std::make_unique<RecordWriter>(run_ / kRunRecordsName, 0);
    open_board(0);
    sync_folder(run_);
    write_run_record();
  }
}

void Trainer::initialise() {
  if (recipe_.init.empty()) return decoder_->initialise(static_cast<uint64_t>(recipe_.seed));
  const auto folder = find_model_folder(recipe_.init);
  if (tokenizer_ && fs::exists(folder / kTokenizerName)) {
    const auto theirs = Tokenizer::load(folder).fingerprint_text();
    PRISM_CHECK(
        theirs == tokenizer_->fingerprint_text(), kOperation,
        "init: expected a model with the tokenizer of the data, {}; found {} in {}; tokenize the text with that.",
        tokenizer_->fingerprint_text(), theirs, folder.string());
  }
  try {
    load_weights(decoder_, folder / "model.safetensors");
  } catch (const InputError& error) {
    throw InputError(
        kOperation, fmt::format("init: expected weights that fit the recipe's model; found otherwise ({}); heads may "
                                "differ, but not d_model, layers, feed-forward widths, what all heads or all key/value "
                                "heads are wide together, nor norms of queries and keys.",
                                error.reason()));
  }
}

void Trainer::claim_folder(Start start) {
  if (start == Start::fresh) make_folder(run_);
  lock_.emplace(run_, kOperation);
  if (start == Start::fresh) check_unused(run_);  // again: another process may have been faster
  checkpoints_.sweep();
  remove_temporaries(run_ / kRunRecipeName);
}

void Trainer::open_data() {
  const fs::path folder = recipe_.data.folder;
  PRISM_CHECK(!folder.empty(), kOperation,
              "expected data.folder, made by prism tokenize; found none; give --data.folder DIR.");
  if (fs::exists(folder / kTokenizerName)) tokenizer_ = Tokenizer::load(folder);
  const auto mixture = open_training_data();
  const auto& info = train_data_[0]->info();
  PRISM_CHECK(
      !info || !tokenizer_ || info->tokenizer_fingerprint == tokenizer_->fingerprint_text(), kOperation,
      "expected the tokenizer that made the shards of {} ({}); found another tokenizer.json ({}) in {}; restore it, or "
      "run prism tokenize again.",
      train_data_[0]->folder().string(), info->tokenizer_fingerprint, tokenizer_->fingerprint_text(), folder.string());
  const int64_t needed = info ? info->vocab_size : tokenizer_ ? tokenizer_->vocab_size() : 0;
  if (recipe_.model.vocab_size == 0) recipe_.model.vocab_size = needed;
  PRISM_CHECK(recipe_.model.vocab_size >= needed, kOperation,
              "expected model.vocab_size of at least {}, the size of the data's tokenizer; found {}; leave it out.",
              needed, recipe_.model.vocab_size);
  const int64_t end_of_text = info ? info->end_of_text : tokenizer_ ? tokenizer_->end_of_text().value_or(-1) : -1;
  WindowOptions options{.context = recipe_.model.context,
                        .rows = recipe_.train.batch_rows,
                        .seed = recipe_.seed,
                        .document_mask = recipe_.data.document_mask,
                        .stride = recipe_.data.stride};
  loader_ = std::make_unique<WindowLoader>(mixture, options, end_of_text);
  if (find_shards(folder, "valid").empty()) {
    PRISM_CHECK(!recipe_.data.mixture.empty() || !info || info->valid_tokens == 0, kOperation,
                "expected the validation shards that data.json speaks of; found none in {}; restore them, or run prism "
                "tokenize again.",
                folder.string());
    return;
  }
  valid_data_ = std::make_unique<TokenDataset>(folder, "valid");
  check_same_tokenizer(*train_data_[0], *valid_data_);
  PRISM_CHECK(valid_data_->size() > recipe_.model.context, kOperation,
              "expected more than {} validation tokens, one context; found {} in {}; give prism tokenize a larger "
              "--valid-share.",
              recipe_.model.context, valid_data_->size(), folder.string());
  options.shuffle = false;
  options.stride = 0;
  valid_windows_ = std::make_unique<WindowLoader>(*valid_data_, options, end_of_text);
}

std::vector<WeightedData> Trainer::open_training_data() {
  auto sources = recipe_.data.mixture;
  if (sources.empty()) sources.push_back({recipe_.data.folder, 1.0});
  std::vector<WeightedData> mixture;
  for (const auto& [folder, weight] : sources) {
    PRISM_CHECK(!folder.empty(), kOperation, "data.mixture: expected a folder in each part; found none; name it.");
    train_data_.push_back(std::make_unique<TokenDataset>(folder, "train"));
    check_same_tokenizer(*train_data_.front(), *train_data_.back());
    mixture.push_back({train_data_.back().get(), weight});
  }
  return mixture;
}

double Trainer::learning_rate_at(int64_t tokens) const {
  return learning_rate_of(recipe_.train, total_steps() * step_tokens(recipe_)).at(static_cast<double>(tokens));
}

int64_t Trainer::total_steps() const {
  return (recipe_.train.tokens + step_tokens(recipe_) - 1) / step_tokens(recipe_);
}

bool Trainer::due(int64_t every_tokens) const {
  return every_tokens > 0 && state_.tokens / every_tokens > (state_.tokens - step_tokens(recipe_)) / every_tokens;
}

void Trainer::restore() {
  const auto folder = *last_checkpoint(run_);
  try {
    state_ = load_run_state(folder);
    load_weights(decoder_, folder / "model.safetensors");
    load_optimizer(folder, optimizer_->state());
  } catch (const InputError& error) {
    throw InputError(kOperation, fmt::format("expected a whole checkpoint in {}; found a damaged one ({}); {}.",
                                             folder.string(), error.reason(), way_round_last()));
  }
  const int64_t step_windows = recipe_.train.batch_rows * recipe_.train.accumulate;
  PRISM_CHECK(state_.step <= total_steps() && state_.tokens == state_.step * step_tokens(recipe_) &&
                  state_.windows == state_.step * step_windows,
              kOperation,
              "expected a state of this run, {} steps of {} tokens; found step {}, {} tokens, {} windows in {}; {}.",
              total_steps(), step_tokens(recipe_), state_.step, state_.tokens, state_.windows, folder.string(),
              way_round_last());
  const auto fingerprint = fingerprint_of(train_data_, valid_data_.get());
  PRISM_CHECK(
      state_.data_fingerprint == fingerprint, kOperation,
      "expected the tokens that the run began with ({}); found others ({}) in {}; restore them or start a new run.",
      state_.data_fingerprint, fingerprint, recipe_.data.folder);
  const auto dtype = compute_type_name(decoder_->compute_type());
  PRISM_CHECK(state_.dtype == dtype, kOperation,
              "expected {}, in which the run began; found that auto means {} here; resume it on such a CPU.",
              state_.dtype, dtype);
  if (state_.threads != threads_)
    notes_.push_back(
        fmt::format("the run began with {} threads; with {} its last digits may differ", state_.threads, threads_));
  if (state_.isa != isa_name(current_isa()))
    notes_.push_back(fmt::format("the run began with kernels for {}; with those for {} its last digits may differ",
                                 state_.isa, isa_name(current_isa())));
  // What an abandoned future left behind must not pass for this run's.
  for (const auto kind : {CheckpointKind::best, CheckpointKind::weights}) checkpoints_.discard_after(kind, state_.step);
  optimizer_->set_steps(state_.step);
  loader_->seek(state_.windows);
  prune_due_ = true;
  records_ = std::make_unique<RecordWriter>(run_ / kRunRecordsName, state_.records_bytes);
  if (done()) return;
  recall_warnings();
  open_board(state_.step + 1);
  write_resume_record();
}

TrainResult Trainer::run() {
  progress_ = std::make_unique<Progress>("train", total_steps() * step_tokens(recipe_), " tokens", state_.tokens);
  timer_.restart();
  begun_tokens_ = logged_tokens_ = state_.tokens;
  begun_seconds_ = logged_seconds_ = state_.step_seconds;
  if (done()) {
    progress_->finish(fmt::format("train: {} is done, {} steps", run_.string(), state_.step));
    return {true, state_.step, state_.tokens, state_.last_val_loss};
  }
  while (state_.step < total_steps() || state_.evaluation_pending) {
    if (stop_signal() != 0 || !advance()) return stop();
  }
  checkpoints_.prune(CheckpointKind::step, recipe_.train.keep_last);
  progress_->finish(fmt::format(
      "train: {} steps, {} tokens in {}, {:.0f} tokens/s, loss {}", state_.step,
      short_number(static_cast<double>(state_.tokens)), short_duration(state_.seconds + timer_.seconds()),
      static_cast<double>(state_.tokens) / state_.step_seconds,
      state_.last_val_loss < 0 ? "not validated" : fmt::format("{:.4f} (validation)", state_.last_val_loss)));
  return {true, state_.step, state_.tokens, state_.last_val_loss};
}

TrainResult Trainer::stop() {
  if (last_checkpoint(run_) != checkpoints_.path(CheckpointKind::step, state_.step)) save_checkpoint();
  progress_->finish(fmt::format("train: stopped at step {}, saved; go on with: prism train --out {} --resume",
                                state_.step, shell_word(run_.string())));
  return {false, state_.step, state_.tokens, state_.last_val_loss};
}

bool Trainer::advance() {
  if (!state_.evaluation_pending && !train_step()) return false;
  state_.evaluation_pending = true;
  return finish_step();
}

bool Trainer::train_step() {
  const Timer timer;
  const auto& train = recipe_.train;
  const int64_t first_window = loader_->position();
  const auto loss = forward_backward();
  if (!loss) {
    loader_->seek(first_window);
    decoder_->zero_grad();
    return false;
  }
  const double norm = optimizer_->gradient_norm();
  if (!std::isfinite(*loss) || !std::isfinite(norm)) fail_not_finite(*loss, norm, first_window);
  // Only now are the weights of the checkpoint before this step known to be good.
  if (std::exchange(prune_due_, false)) checkpoints_.prune(CheckpointKind::step, train.keep_last);

  std::optional<StepDiagnostics> diagnostics;
  Timer looking;
  if (diagnosis_due()) {
    diagnostics.emplace(decoder_, batches_from(first_window, 1).front());
    if (board_) board_->add_parameters(state_.step + 1, decoder_);
  }
  double looked_seconds = looking.seconds();
  optimizer_->step(learning_rate_at(state_.tokens + step_tokens(recipe_)), norm);
  ++state_.step;
  state_.tokens += step_tokens(recipe_);
  state_.windows = loader_->position();
  const double step_seconds = timer.seconds() - looked_seconds;
  state_.step_seconds += step_seconds;
  state_.loss_sum += *loss;
  ++state_.loss_count;
  last_loss_ = *loss;
  last_norm_ = norm;
  show_progress(state_.tokens);
  if (state_.step % train.log_steps == 0 || state_.step == total_steps()) record_training();
  warn(watch_.look(*loss));
  if (!diagnostics) return true;
  looking.restart();
  const auto report = diagnostics->finish();
  looked_seconds += looking.seconds();
  record_diagnostics(report, step_seconds, looked_seconds);
  return true;
}

bool Trainer::diagnosis_due() const {
  const int64_t every = recipe_.train.diagnose_steps, step = state_.step + 1;
  if (every == 0) return false;
  const bool power_of_four =
      std::has_single_bit(static_cast<uint64_t>(step)) && std::countr_zero(static_cast<uint64_t>(step)) % 2 == 0;
  return step % every == 0 || (step < every && power_of_four);
}

std::vector<Batch> Trainer::batches_from(int64_t first_window, int64_t count) {
  const int64_t position = loader_->position();
  loader_->seek(first_window);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < count; ++i) batches.push_back(loader_->next());
  loader_->seek(position);
  return batches;
}

std::optional<double> Trainer::forward_backward() {
  const auto& train = recipe_.train;
  double sum = 0;
  for (int64_t i = 0; i < train.accumulate; ++i) {
    if (i > 0 && stop_signal() != 0) return std::nullopt;
    Batch batch = loader_->next();
    const BatchTensors tensors(batch);
    const auto loss = decoder_->loss(decoder_(tensors.tokens_BT, tensors.context), tensors.labels_BT, train.z_loss);
    sum += loss.item<double>();
    (loss / static_cast<double>(train.accumulate)).backward();
    if (i + 1 < train.accumulate) show_progress(state_.tokens + (i + 1) * train.batch_rows * recipe_.model.context);
  }
  return sum / static_cast<double>(train.accumulate);
}

void Trainer::show_progress(int64_t tokens) {
  if (last_loss_ == 0) return progress_->update(tokens, fmt::format("step {}", state_.step + 1));
  const double rate = static_cast<double>(state_.tokens - begun_tokens_) / (state_.step_seconds - begun_seconds_);
  const auto share = peak_share(rate);
  progress_->update(tokens, fmt::format("step {} | loss {:.3f}{}", state_.step, last_loss_,
                                        share ? fmt::format(" | {:.0f}% of the CPU", 100 * *share) : ""));
}

std::string Trainer::way_round_last() const {
  return checkpoints_.steps(CheckpointKind::step).size() > 1 ? "delete that folder to go on from the one before"
                                                             : "it is the only one, so start a new run";
}

std::string Trainer::way_back() const {
  auto steps = checkpoints_.steps(CheckpointKind::step);
  std::string newest;
  if (!steps.empty() && steps.back() >= state_.step) {
    newest = checkpoints_.path(CheckpointKind::step, steps.back()).string();
    steps.pop_back();
  }
  const std::string good =
      steps.empty() ? "there is no checkpoint known to be good"
                    : "the last good checkpoint is " + checkpoints_.path(CheckpointKind::step, steps.back()).string();
  return newest.empty() ? good : fmt::format("{} (delete {} to resume from before it)", good, newest);
}

void Trainer::fail_not_finite(double loss, double norm, int64_t first_window) {
  const auto place = place_of_divergence(decoder_, batches_from(first_window, recipe_.train.accumulate));
  // The curve ends at the last loss that this process made.
  if (state_.tokens > logged_tokens_) record_training();
  // Without the sign that some processors give a NaN.
  fail_diverged(state_.step + 1, place,
                fmt::format("expected a finite loss; found loss {} and gradient norm {} at step {}, windows {}-{} of "
                            "the data{}",
                            std::isnan(loss) ? std::abs(loss) : loss, std::abs(norm), state_.step + 1, first_window,
                            loader_->position() - 1, place.empty() ? "" : fmt::format(", first in {}", place)));
}

void Trainer::fail_diverged(int64_t step, const std::string& place, const std::string& sentence) {
  record_divergence(step, place);
  const auto& layers = recipe_.model.layers;
  const bool has_norms =
      std::all_of(layers.begin(), layers.end(), [](const auto& layer) { return layer.norm != "none"; });
  throw FailedError(kOperation, fmt::format("{}; {}; lower train.learning_rate{}.", sentence, way_back(),
                                            has_norms ? " or lengthen the warm-up"
                                                      : ", lengthen the warm-up or set model.norm to rms"));
}

void Trainer::check_last_step() {
  const torch::NoGradGuard no_gradients;
  auto batches = batches_from(state_.windows - recipe_.train.batch_rows * recipe_.train.accumulate, 1);
  const BatchTensors tensors(batches.front());
  const auto loss = decoder_->loss(decoder_(tensors.tokens_BT, tensors.context), tensors.labels_BT).item<double>();
  if (std::isfinite(loss)) return;
  fail_diverged(state_.step, place_of_divergence(decoder_, batches),
                fmt::format("expected a finite loss after the last step, {}; found {}", state_.step, loss));
}

bool Trainer::finish_step() {
  const auto& train = recipe_.train;
  const bool last = state_.step == total_steps();
  if (last) check_last_step();
  // Before anything of this step is recorded: a signal may cut it short, and --resume does it again.
  std::vector<Json> finals;
  if (last) {
    auto records = measure_finals();
    if (!records) return false;
    finals = std::move(*records);
  }
  if (valid_data_ && (last || due(train.eval_every_tokens)) && !evaluate()) return false;
  if (std::binary_search(save_steps_.begin(), save_steps_.end(), state_.step)) save_weights(CheckpointKind::weights);
  if (last) {
    for (const auto& measured : finals) {
      Json json = record("measured");
      json.update(measured);  // with a kind of its own
      keep(json);
    }
  }
  if (last || due(train.sample_every_tokens)) record_samples();
  if (last) record_end();
  state_.evaluation_pending = false;
  if (last || due(train.checkpoint_every_tokens)) save_checkpoint();
  return true;
}

std::optional<std::vector<Json>> Trainer::measure_finals() {
  try {
    return final_records(decoder_, tokenizer_ ? &*tokenizer_ : nullptr, valid_windows_.get(), recipe_.final);
  } catch (const std::exception&) {
    save_checkpoint();  // the training is done: --resume measures again
    throw;
  }
}

bool Trainer::evaluate() {
  const auto validation = validation_loss(decoder_, *valid_windows_, recipe_.train.eval_tokens);
  if (!validation) return false;
  const auto [loss, tokens] = *validation;
  if (!std::isfinite(loss))
    fail_diverged(state_.step, "the validation loss",
                  fmt::format("expected a finite validation loss; found {} after step {}, windows up to {} of the data",
                              loss, state_.step, state_.windows - 1));
  state_.last_val_loss = loss;
  Json json = record("eval");
  json.update({{"val_loss", loss}, {"val_tokens", tokens}});
  keep(json);
  if (state_.best_val_loss >= 0 && loss >= state_.best_val_loss) return true;
  state_.best_val_loss = loss;
  save_weights(CheckpointKind::best);
  checkpoints_.prune(CheckpointKind::best, 1);
  return true;
}

GenerateOptions Trainer::sample_options(const std::string& prompt, double temperature) const {
  GenerateOptions options;
  const auto room = room_behind(recipe_.model, *tokenizer_, prompt);
  options.max_new_tokens = std::min(recipe_.train.sample_tokens, room.value_or(recipe_.train.sample_tokens));
  options.heed_signals = false;  // a sample cut short would stand in the records for ever
  options.sampler.temperature = temperature;
  options.sampler.seed = recipe_.seed;
  return options;
}

void Trainer::check_samples() {
  const auto& prompts = recipe_.train.sample_prompts;
  if (!tokenizer_) {
    if (!prompts.empty())
      notes_.push_back(
          fmt::format("{} has no tokenizer.json, so train.sample_prompts are left out", recipe_.data.folder));
    return;
  }
  for (const auto& prompt : prompts) {
    try {
      room_behind(recipe_.model, *tokenizer_, prompt);
    } catch (const InputError& error) {
      throw InputError(kOperation, fmt::format("train.sample_prompts: {}.", error.reason()));
    }
  }
}

void Trainer::save_checkpoint() {
  RunState state = state_;
  state.seconds = seconds();
  state.records_bytes = records_->sync();
  const auto& trend = watch_.trend();
  state.mean_loss = trend.mean;
  state.least_loss = trend.least;
  state.loss_variance = trend.variance;
  checkpoints_.save(CheckpointKind::step, state_.step, [&](const fs::path& folder) {
    save_model(folder, decoder_, tokenizer_ ? &*tokenizer_ : nullptr);
    save_run_state(folder, state, optimizer_->state());
  });
  checkpoints_.prune(CheckpointKind::step, recipe_.train.keep_last + 1);
  prune_due_ = true;
}

void Trainer::save_weights(CheckpointKind kind) {
  checkpoints_.save(kind, state_.step,
                    [&](const fs::path& folder) { save_model(folder, decoder_, tokenizer_ ? &*tokenizer_ : nullptr); });
}

}  // namespace prism
