#include "prism/bench/training.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_set>

// Needs the containers above but does not include them.
#include <torch/csrc/autograd/profiler_kineto.h>

#include "prism/bench/measure.h"
#include "prism/core/machine.h"
#include "prism/core/text/names.h"
#include "prism/core/timer.h"
#include "prism/kernels/compute_type.h"
#include "prism/kernels/simd/isa.h"
#include "prism/models/classifier.h"
#include "prism/models/cost.h"
#include "prism/models/decoder.h"
#include "prism/training/objective/vocabulary.h"
#include "prism/training/optimizer/optimizer.h"

namespace prism {
namespace {

constexpr const char *kLibTorch = "libtorch", *kNoPeer = "none";
constexpr int64_t kUncounted = 2;  ///< steps before profiling, which allocate memory and fill caches

struct CaseRow {
  int64_t vocab_size, d_model;
  const char* schedule;
  int64_t context, ffn_width, rows;
};

const std::map<std::string, CaseRow>& cases() {
  static const std::map<std::string, CaseRow> table = {
      {"tiny", {8192, 256, "4x6", 256, 688, 16}},
      {"small", {50304, 768, "12x12", 1024, 2048, 2}},
      {"small-prism", {50304, 768, "3x2,6x2,8x2,12x6", 1024, 2048, 2}},
      {"357m-2layers", {32000, 1024, "16x2", 1024, 2730, 4}},
  };
  return table;
}

/// Two of three tokens start a word, as in English text.
std::vector<uint8_t> random_word_starts(int64_t vocab_size) {
  const auto starts = torch::rand({vocab_size}).lt(2.0 / 3).to(torch::kByte);
  const auto* first = starts.const_data_ptr<uint8_t>();
  return {first, first + vocab_size};
}

/// A model in training on random tokens and labels.
class Workload {
 public:
  Workload(const TrainingCase& measured, torch::ScalarType type)
      : tokens_(torch::randint(0, measured.model.vocab_size, {measured.rows, measured.model.context}, torch::kLong)) {
    const bool classifies = measured.model.classes > 0;
    classifies ? make_classifier(measured) : make_decoder(measured);
    Trunk& model = classifies ? static_cast<Trunk&>(*classifier_) : *decoder_;
    model.initialise(0);
    model.set_compute_type(type);
    model.set_recompute(measured.recompute);
    if (has_word_positions(measured.model)) model.set_word_starts(random_word_starts(measured.model.vocab_size));
    optimizer_ = make_optimizer(model.weights(), measured.optimizer, type);
  }

  void step() {
    Budgets budgets(BudgetSchedule(), /*progress=*/0, {.step = steps_++});
    Auxiliary auxiliary(/*progress=*/0);
    ForwardContext context;
    context.budgets = &budgets;
    context.auxiliary = &auxiliary;
    context.prompts_B = prompts_B_;
    auto loss = loss_(context);
    if (auxiliary.loss().defined()) loss = loss + auxiliary.loss();
    loss.backward();
    optimizer_->step(3e-4, optimizer_->gradient_norm());
  }

 private:
  void make_decoder(const TrainingCase& measured) {
    decoder_ = Decoder(measured.model);
    const auto labels = torch::randint(0, measured.model.vocab_size, tokens_.sizes(), torch::kLong);
    // Head budgets read half of each row. All tokens are predicted, so that the head does the same work without them.
    if (layers_with_budgets(measured.model) > 0)
      prompts_B_ = torch::full({measured.rows}, std::max<int64_t>(1, measured.model.context / 2), torch::kInt);
    loss_ = [this, labels](const ForwardContext& context) {
      const auto hidden_BTD = decoder_(tokens_, context);
      auto loss = decoder_->head.loss(hidden_BTD, labels);
      if (decoder_->skip_head) loss = loss + decoder_->skip_head->loss(hidden_BTD, labels);
      return loss;
    };
  }
  void make_classifier(const TrainingCase& measured) {
    classifier_ = Classifier(measured.model);
    const auto labels_B = torch::randint(0, measured.model.classes, {measured.rows}, torch::kLong);
    loss_ = [this, labels_B](const ForwardContext& context) {
      return ClassificationHead::loss(classifier_->head.logits(classifier_(tokens_, context), {}), labels_B);
    };
  }

  Decoder decoder_{nullptr};
  Classifier classifier_{nullptr};
  torch::Tensor tokens_, prompts_B_;
  std::function<torch::Tensor(const ForwardContext&)> loss_;
  std::optional<Optimizer> optimizer_;
  int64_t steps_ = 0;
};

std::function<void()> make_peer(const TrainingCase& measured, const TrainingBench& bench, torch::ScalarType type) {
  if (bench.peer.name == kNoPeer) return {};
  const auto peer_type = bench.peer.dtype.empty() ? type : find_compute_type(bench.peer.dtype);
  const auto work = std::make_shared<Workload>(bench.peer.other.value_or(measured), peer_type);
  if (bench.peer.other) return [work] { work->step(); };
  return [work] {
    const IsaScope portable(Isa::portable);
    work->step();
  };
}

/// Sums the own time of each event, without nested events. An event inside an operation of prism counts towards that
/// operation, any other under its own name.
std::map<std::string, OperationTime> own_times(const torch::autograd::profiler::ProfilerResult& result) {
  struct Event {
    std::string name;
    uint64_t thread, start, end;
  };
  std::vector<Event> events;
  for (const auto& event : result.events())
    events.push_back({event.name(), event.startThreadId(), event.startNs(), event.endNs()});
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tuple(a.thread, a.start, ~a.end) < std::tuple(b.thread, b.start, ~b.end);
  });
  constexpr std::string_view kOurs = "prism::";
  struct Open {
    uint64_t thread, end;
    std::string operation;
  };
  std::vector<Open> open;
  std::map<std::string, OperationTime> times;
  for (const auto& event : events) {
    while (!open.empty() && (open.back().thread != event.thread || open.back().end <= event.start)) open.pop_back();
    const bool inside = !open.empty() && open.back().operation.starts_with(kOurs) && !event.name.starts_with(kOurs);
    const std::string operation = inside ? open.back().operation : event.name;
    const double ms = static_cast<double>(event.end - event.start) * 1e-6;
    auto& time = times[operation];
    time.operation = operation;
    time.calls += !inside;
    time.ms += ms;
    if (!open.empty()) times[open.back().operation].ms -= ms;
    open.push_back({event.thread, event.end, operation});
  }
  return times;
}

}  // namespace

TrainingCase find_training_case(const std::string& name) {
  if (name.ends_with(".json")) return training_case_of(load_recipe(name, {}));
  const auto& row = find_by_name(cases(), name, "bench", "case");
  TrainingCase found{name, {}, row.rows};
  found.model.vocab_size = row.vocab_size;
  found.model.d_model = row.d_model;
  found.model.context = row.context;
  found.model.schedule = row.schedule;
  found.model.ffn_width = row.ffn_width;
  expand_shorthand(found.model);
  complete(found.model);
  return found;
}

TrainingCase training_case_of(const Recipe& recipe) {
  check_options(recipe);
  TrainingCase found{recipe.name, recipe.model, recipe.train.batch_rows, recipe.train.optimizer_options,
                     recipe.train.recompute};
  if (found.model.vocab_size == 0) {
    const auto of_data = vocab_size_of_data(recipe);
    PRISM_CHECK(of_data, "bench",
                "expected a vocabulary size; found none in {} and no data.json in {}; set model.vocab_size.",
                recipe.name, recipe.data.folder);
    found.model.vocab_size = *of_data;
  }
  complete(found.model);
  return found;
}

TrainingPeer find_training_peer(const std::string& name) {
  if (name == kLibTorch || name == kNoPeer) return {name, {}};
  PRISM_CHECK(name.ends_with(".json") || cases().contains(name), "bench",
              "expected the peer libtorch, none or a case; found \"{}\"; see prism bench training --help.", name);
  auto other = find_training_case(name);
  return {other.name, std::move(other)};
}

TrainingTiming bench_training(const TrainingCase& measured, const TrainingBench& bench) {
  PRISM_CHECK(bench.steps > 0, "bench", "expected at least 1 step; found {}; raise it.", bench.steps);
  const auto type = find_compute_type(bench.dtype);
  torch::manual_seed(0);
  Workload work(measured, type);
  const auto peer = make_peer(measured, bench, type);
  TrainingTiming row;
  const Timer timer;
  work.step();
  row.first_step_s = timer.seconds();
  if (peer) peer();
  const auto medians = take_turns([&] { work.step(); }, peer, bench.steps);
  const auto cost = model_cost(measured.model);
  row.name = measured.name;
  row.dtype = bench.dtype;
  row.parameters = cost.parameters;
  row.batch = measured.rows;
  row.tokens = measured.model.context;
  row.prism_ms = medians.prism_ms;
  row.peer = bench.peer.name;
  row.peer_ms = medians.peer_ms;
  const auto& other = bench.peer.other.value_or(measured);
  row.ratio = medians.ratio() * static_cast<double>(row.batch * row.tokens) /
              static_cast<double>(other.rows * other.model.context);
  row.tokens_per_s = static_cast<double>(row.batch * row.tokens) / medians.prism_ms * 1e3;
  const double flops = row.tokens_per_s * 3 * static_cast<double>(cost.flops_per_token);
  row.peak_share = share_of_peak(flops, bench.threads, type);
  row.peak_memory_bytes = peak_memory_bytes();
  return row;
}

std::vector<OperationTime> profile_training(const TrainingCase& measured, const TrainingBench& bench) {
  namespace profiler = torch::autograd::profiler;
  ::setenv("KINETO_LOG_LEVEL", "99", 0);  // otherwise Kineto warns about missing GPUs
  torch::manual_seed(0);
  Workload work(measured, find_compute_type(bench.dtype));
  for (int64_t step = 0; step < kUncounted; ++step) work.step();
  const profiler::ProfilerConfig config(profiler::ProfilerState::KINETO);
  const std::set<profiler::ActivityType> activities = {profiler::ActivityType::CPU};
  profiler::prepareProfiler(config, activities);
  profiler::enableProfiler(config, activities);
  for (int64_t step = 0; step < bench.steps; ++step) work.step();
  std::vector<OperationTime> list;
  for (auto& [name, time] : own_times(*profiler::disableProfiler())) {
    time.ms /= static_cast<double>(bench.steps);
    time.calls /= bench.steps;
    list.push_back(time);
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.ms > b.ms; });
  return list;
}

}  // namespace prism
