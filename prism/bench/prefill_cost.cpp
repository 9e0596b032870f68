#include "prism/bench/prefill_cost.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/machine.h"
#include "prism/core/stop.h"
#include "prism/core/timer.h"
#include "prism/kernels/attention/attend.h"
#include "prism/kernels/attention/block_mask.h"
#include "prism/kernels/simd/isa.h"
#include "prism/sparse/methods/pooled/spectral.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kHeads = 8, kKvHeads = 2, kShort = 1024, kLong = 4096;
constexpr const char* kFileName = "prefill_cost.json";
/// Steps between the kept blocks of three masks: one run a row, runs of single blocks, and only each row's own blocks.
constexpr std::array<int64_t, 3> kSteps = {1, 2, kLong};
constexpr int kLeastRounds = 5, kMostRounds = 25;
/// Increase when the measurement or the kernels change; all costs are then measured again.
constexpr int kVersion = 4;

/// The fastest time of a call.
struct Fastest {
  double seconds = std::numeric_limits<double>::infinity();
  int times = 0;  ///< rounds within 5% of it

  void add(double found) {
    times = found < 0.95 * seconds ? 1 : times + static_cast<int>(found <= 1.05 * seconds);
    seconds = std::min(seconds, found);
  }
  /// A single fast round may come from a higher clock rate, and on a busy machine all rounds may be slow.
  bool is_sure() const { return times >= 3; }
};

/// Calls take turns, so that other work on the machine affects all alike. Ends when all times are sure, or after
/// kMostRounds rounds, a second or two.
/// @throws FailedError if a stop signal arrives.
std::vector<Fastest> fastest_in_turn(const std::vector<std::function<void()>>& calls) {
  for (const auto& call : calls) call();
  std::vector<Fastest> fastest(calls.size());
  for (int round = 0; round < kMostRounds; ++round) {
    for (size_t i = 0; i < calls.size(); ++i) {
      if (stop_signal() != 0) throw FailedError("prefill_cost", "stopped by a signal; nothing was measured.");
      const Timer timer;
      calls[i]();
      fastest[i].add(timer.seconds());
    }
    const bool sure = std::all_of(fastest.begin(), fastest.end(), [](const Fastest& call) { return call.is_sure(); });
    if (sure && round + 1 >= kLeastRounds) break;
  }
  return fastest;
}

/// Solves  x a + y b = seconds  for a and b, from two measurements, the larger last. If noise makes one of them
/// negative, a comes from the larger measurement alone and b is 0.
std::array<double, 2> solve(std::array<double, 2> x, std::array<double, 2> y, std::array<double, 2> seconds) {
  const double b = (x[0] * seconds[1] - x[1] * seconds[0]) / (x[0] * y[1] - x[1] * y[0]);
  const double a = (seconds[1] - y[1] * b) / x[1];
  return a > 0 && b >= 0 ? std::array{a, b} : std::array{seconds[1] / x[1], 0.0};
}

/// Sets the costs of sparse attention from the times of masks of kSteps. None is lower than that of dense attention,
/// which computes the same products and rows: a lower measurement is noise.
void add_sparse_costs(const std::array<KeptWork, 3>& kept, double rows, const std::array<double, 3>& seconds,
                      PrefillCost& cost) {
  const auto& [all, single, few] = kept;
  cost.sparse_pair = std::max((seconds[0] - seconds[2]) / (all.pairs - few.pairs), cost.dense_pair);
  const double of_runs = seconds[1] - seconds[2] - (single.pairs - few.pairs) * cost.sparse_pair;
  cost.sparse_run = std::max(of_runs / (single.runs - few.runs), 0.0);
  const double of_rows = seconds[2] - few.pairs * cost.sparse_pair - few.runs * cost.sparse_run;
  cost.sparse_row = std::max(of_rows / rows, cost.dense_row);
}

/// A mask that keeps each row's own blocks and every `step`-th block before them.
BlockMask striped_mask(const HeadBlocks& blocks, int64_t step) {
  std::vector<std::vector<int32_t>> kept_HM;
  for (int64_t i = 0; i < kHeads * blocks.rows(); ++i) {
    const int64_t row = i % blocks.rows(), own = blocks.own_block(row);
    auto& kept = kept_HM.emplace_back();
    for (int64_t n = 0; n < blocks.visible(row); ++n)
      if (n >= own || (own - n) % step == 0) kept.push_back(static_cast<int32_t>(n));
  }
  return make_block_mask(kept_HM, 1, kHeads, blocks.query_block, blocks.key_block);
}

/// A prompt of noise, and its attention.
struct Noise {
  SelectorInput input;
  AttentionInput attention;

  Noise(const PrefillShape& shape, int64_t tokens) {
    const auto random = [&](torch::IntArrayRef sizes) {
      return at::randn(sizes, at::make_generator<at::CPUGeneratorImpl>(1), torch::kFloat).to(shape.type);
    };
    input.q_BTHD = random({1, tokens, kHeads, shape.head_dim});
    input.k_BGSD = random({1, kKvHeads, tokens, shape.head_dim});
    std::vector<double> angles;
    for (int64_t j = 0; j < shape.head_dim / 2; ++j) angles.push_back(1.0 / static_cast<double>(1 + j));
    input.pairs = half_split_pairs(shape.head_dim, angles);
    attention.q_BTHD = input.q_BTHD;
    attention.kv = {input.k_BGSD, input.k_BGSD, {}};
  }
};

std::string cost_key(const PrefillShape& shape) {
  static const std::string cpu = cpu_name();  // reads a file
  return fmt::format("version {}, {}, {} threads, {}, width {}, blocks {} x {}, {}", kVersion, cpu,
                     at::get_num_threads(), isa_name(current_isa()), shape.head_dim, shape.query_block, shape.key_block,
                     c10::toString(shape.type));
}

/// Returns true if all costs are finite and non-negative, and positive where they must be.
bool makes_sense(const PrefillCost& cost) {
  const auto is_cost = [](double seconds) { return std::isfinite(seconds) && seconds >= 0; };
  return is_cost(cost.dense_pair) && is_cost(cost.dense_row) && cost.dense_pair > 0 && is_cost(cost.sparse_pair) &&
         is_cost(cost.sparse_run) && is_cost(cost.sparse_row) && is_cost(cost.select_call) &&
         is_cost(cost.select_token) && is_cost(cost.select_pair) && cost.sparse_pair > 0 && cost.select_call > 0;
}

/// All kept costs; an empty object if there are none or the file cannot be read.
Json read_kept() {
  const auto folder = prefill_cost_folder();
  try {
    std::error_code unreachable;
    if (folder && fs::exists(*folder / kFileName, unreachable)) {
      Json costs = read_json((*folder / kFileName).string());
      if (costs.is_object()) return costs;
    }
  } catch (const Error&) {
    // A damaged file counts as empty, so its costs are measured again.
  }
  return Json::object();
}

/// @return the reason why the file cannot be written, or "".
std::string write_kept(const Json& costs) {
  const auto folder = prefill_cost_folder();
  if (!folder) return "found none of PRISM_CACHE, XDG_CACHE_HOME and HOME in the environment";
  try {
    make_folder(*folder);
    write_file(*folder / kFileName, to_text(costs, 2) + "\n");
  } catch (const Error& error) {
    return error.reason();
  }
  return "";
}

/// One of the kept costs; std::nullopt if it is missing, damaged or of another version.
std::optional<PrefillCost> cost_in(const Json& costs, const std::string& key) {
  const auto found = costs.find(key);
  if (found == costs.end()) return std::nullopt;
  try {
    const auto cost = fields_from_json<PrefillCost>(*found, kFileName);
    if (found->size() == fields_to_json(cost).size() && makes_sense(cost)) return cost;
  } catch (const Error&) {
    // has other fields
  }
  return std::nullopt;
}

/// Keeps a cost. If another process has kept one since the lookup, that one is used instead.
/// @param note  set if the cost cannot be kept.
/// @return the cost to use.
PrefillCost keep(const PrefillShape& shape, const PrefillCost& measured, std::string& note) {
  Json costs = read_kept();
  const std::string key = cost_key(shape);
  if (const auto kept = cost_in(costs, key)) return *kept;
  costs[key] = fields_to_json(measured);
  const std::string reason = write_kept(costs);
  if (!reason.empty())
    note =
        fmt::format("auto: the measured costs cannot be kept ({}), so the next run may select other blocks.", reason);
  return measured;
}

}  // namespace

PrefillCost measure_prefill_cost(const PrefillShape& shape) {
  const torch::NoGradGuard no_gradients;
  const auto spectral = make_spectral_selector(
      {.last_dense = 0,  // such rows are not scored
       .blocks = {.block_size = shape.query_block, .query_block = shape.query_block, .key_block = shape.key_block}});
  const auto selection_of = [&](const Noise& noise) {
    return [&spectral, noise] { spectral->select(noise.input, *spectral->make_state(noise.input)); };
  };
  std::vector<std::function<void()>> calls = {selection_of(Noise(shape, 1))};
  std::array<double, 2> pairs{}, rows{}, tokens{}, pooled{};
  for (const size_t i : {0, 1}) {
    const Noise noise(shape, i == 0 ? kShort : kLong);
    const auto blocks = SelectorLengths(noise.input).blocks(0, shape.query_block, shape.key_block);
    pairs[i] = static_cast<double>(kHeads * blocks.seen_pairs());
    rows[i] = static_cast<double>(kHeads * blocks.rows());
    tokens[i] = static_cast<double>((kHeads + kKvHeads) * blocks.keys);
    pooled[i] = static_cast<double>(kHeads * blocks.visible_blocks());
    calls.insert(calls.end(), {[noise] { attend(noise.attention); }, selection_of(noise)});
  }
  const Noise noise(shape, kLong);
  const SelectorLengths lengths(noise.input);
  std::array<KeptWork, 3> kept;
  for (const size_t i : {0, 1, 2}) {
    AttentionInput masked = noise.attention;
    masked.block_mask = striped_mask(lengths.blocks(0, shape.query_block, shape.key_block), kSteps[i]);
    kept[i] = kept_work(lengths, masked.block_mask);
    calls.emplace_back([masked] { attend(masked); });
  }
  const auto fastest = fastest_in_turn(calls);

  PrefillCost cost;
  // One token never costs more than many; a measurement that says so was disturbed.
  cost.select_call = std::min(fastest[0].seconds, fastest[2].seconds);
  const auto selection = [&](size_t call) { return std::max(fastest[call].seconds - cost.select_call, 0.0); };
  std::tie(cost.dense_pair, cost.dense_row) =
      std::tuple_cat(solve(pairs, rows, {fastest[1].seconds, fastest[3].seconds}));
  std::tie(cost.select_token, cost.select_pair) = std::tuple_cat(solve(tokens, pooled, {selection(2), selection(4)}));
  add_sparse_costs(kept, rows[1], {fastest[5].seconds, fastest[6].seconds, fastest[7].seconds}, cost);
  return cost;
}

MachineCosts machine_prefill_costs(const std::vector<PrefillShape>& shapes,
                                   const std::function<PrefillCost(const PrefillShape&)>& measure) {
  MachineCosts machine;
  for (const auto& shape : shapes) {
    if (machine.costs.contains(shape) || !flash_backend_serves(Noise(shape, 1).attention)) continue;
    auto cost = cost_in(read_kept(), cost_key(shape));
    if (!cost) cost = keep(shape, measure(shape), machine.note);
    machine.costs[shape] = *cost;
  }
  return machine;
}

std::optional<fs::path> prefill_cost_folder() {
  const auto variable = [](const char* name) -> std::optional<fs::path> {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  };
  if (auto folder = variable("PRISM_CACHE")) return folder;
  if (const auto folder = variable("XDG_CACHE_HOME")) return *folder / "prism";
  if (const auto folder = variable("HOME")) return *folder / ".cache" / "prism";
  return std::nullopt;
}

}  // namespace prism
