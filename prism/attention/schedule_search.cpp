#include "prism/attention/schedule_search.h"

#include <algorithm>

#include "prism/core/error.h"

namespace prism {
namespace {

constexpr size_t kMostSchedules = 100000;

/// The head counts that a layer may have, ascending; the last is the base.
std::vector<int64_t> heads_that_fit(const ScheduleSpace& space) {
  std::vector<int64_t> heads;
  for (int64_t h = 1; h <= space.base_heads; ++h)
    if (space.d_model % h == 0 && space.d_model / h % space.head_dim_step == 0) heads.push_back(h);
  return heads;
}

/// Builds schedules stage by stage.
class Proposer {
 public:
  Proposer(const ScheduleSpace& space, std::vector<int64_t> heads)
      : space_(space),
        heads_(std::move(heads)),
        base_layers_(space.least_base_layers > 0 ? space.least_base_layers : (space.layers + 1) / 2) {}

  std::vector<HeadSchedule> run() {
    extend(0, 0);
    // Ordered by the heads of the stages first, then by their lengths.
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Proposal& a, const Proposal& b) { return a.heads < b.heads; });
    std::vector<HeadSchedule> schedules;
    for (auto& proposal : found_) schedules.push_back(std::move(proposal.schedule));
    return schedules;
  }

 private:
  struct Proposal {
    std::vector<int64_t> heads;  ///< of its stages, in order
    HeadSchedule schedule;
  };

  /// @param next    index of the smallest head count that the next stage may have.
  /// @param stages  number of stages so far.
  void extend(size_t next, int64_t stages) {
    const auto used = static_cast<int64_t>(schedule_.size());
    if (stages >= 1 && stages + 1 >= space_.least_stages && space_.layers - used >= base_layers_) {
      Proposal proposal{stage_heads_, schedule_};
      proposal.schedule.resize(static_cast<size_t>(space_.layers), space_.base_heads);
      PRISM_CHECK(found_.size() < kMostSchedules, "schedule_search",
                  "expected at most {} schedules; found more; lower most_stages, or raise least_stage_layers or "
                  "head_dim_step.",
                  kMostSchedules);
      found_.push_back(std::move(proposal));
    }
    if (stages + 2 > space_.most_stages) return;
    for (size_t i = next; i + 1 < heads_.size(); ++i) {
      if (stages == 0 && !may_begin(heads_[i])) continue;
      for (int64_t length = space_.least_stage_layers; used + length + base_layers_ <= space_.layers; ++length) {
        schedule_.insert(schedule_.end(), static_cast<size_t>(length), heads_[i]);
        stage_heads_.push_back(heads_[i]);
        extend(i + 1, stages + 1);
        stage_heads_.pop_back();
        schedule_.resize(static_cast<size_t>(used));
      }
    }
  }

  bool may_begin(int64_t heads) const {
    const auto& wanted = space_.first_heads;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), heads) != wanted.end();
  }

  const ScheduleSpace& space_;
  std::vector<int64_t> heads_;
  int64_t base_layers_;
  HeadSchedule schedule_;
  std::vector<int64_t> stage_heads_;
  std::vector<Proposal> found_;
};

void check(const ScheduleSpace& space) {
  for (const auto& [name, value] : {std::pair{"d_model", space.d_model},
                                    {"layers", space.layers},
                                    {"base_heads", space.base_heads},
                                    {"least_stage_layers", space.least_stage_layers},
                                    {"head_dim_step", space.head_dim_step}})
    PRISM_CHECK(value >= 1, "schedule_search", "{}: expected at least 1; found {}; raise it.", name, value);
  PRISM_CHECK(space.layers <= 128 && space.most_stages <= 8, "schedule_search",
              "expected at most 128 layers and 8 stages; found {} and {}; lower them.", space.layers,
              space.most_stages);
  PRISM_CHECK(space.least_stages >= 2 && space.least_stages <= space.most_stages, "schedule_search",
              "expected 2 <= least_stages <= most_stages; found {} and {}; change them.", space.least_stages,
              space.most_stages);
  check_head_divides(space.base_heads, static_cast<size_t>(space.layers - 1), space.d_model);
}

}  // namespace

std::vector<HeadSchedule> propose_schedules(const ScheduleSpace& space) {
  check(space);
  auto heads = heads_that_fit(space);
  PRISM_CHECK(
      !heads.empty() && heads.back() == space.base_heads, "schedule_search",
      "base_heads: expected heads whose width, d_model / base_heads, is a multiple of {}; found {} heads of width "
      "{}; change base_heads or head_dim_step.",
      space.head_dim_step, space.base_heads, space.d_model / space.base_heads);
  auto schedules = Proposer(space, heads).run();
  heads.pop_back();
  PRISM_CHECK(
      !heads.empty(), "schedule_search",
      "expected a schedule in the space; found none, because no head count below base_heads, {}, fits; widen the "
      "space.",
      space.base_heads);
  PRISM_CHECK(
      !schedules.empty(), "schedule_search",
      "expected a schedule in the space; found none, because the stages before the last, with {} heads, need {} "
      "layers each, and the last stage needs {} of the model's {} layers; widen the space.",
      fmt::join(heads, " or "), space.least_stage_layers,
      space.least_base_layers > 0 ? space.least_base_layers : (space.layers + 1) / 2, space.layers);
  return schedules;
}

}  // namespace prism
