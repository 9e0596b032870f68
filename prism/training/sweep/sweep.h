// A sweep: variations (arms) of one recipe, each trained with the same seeds, so that differences can be paired.
//
//   {"recipe": "base.json", "set": {"train.tokens": "4M"}, "seeds": [1, 2, 3], "baseline": "uniform",
//    "arms": {"uniform": {"model.schedule": "8x8"}, "progressive": {"model.schedule": "2x2,4x2,8x4"}}}
//
//   const Sweep sweep = load_sweep("sweep.json", {});
//   for (const SweepRun& run : plan_sweep(sweep, "runs/sweep", "")) ...  // finished runs and runs to do
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "prism/attention/schedule_search.h"
#include "prism/records/run_records.h"
#include "prism/training/recipe.h"

namespace prism {

/// How `prism sweep --search schedules` searches (schedule_sweep.h).
struct SearchOptions {
  ScheduleSpace space;  ///< its fields appear among these
  int64_t candidates = 27, rungs = 3, factor = 3;
  template <class Visitor>
  void visit(Visitor& v) {
    space.visit(v);
    v("candidates", candidates,
      "schedules in the first rung; if the space has more, they are sampled from it with the first seed");
    v("rungs", rungs, "rounds of training; runs of the last one train for train.tokens");
    v("factor", factor,
      "after each rung, the best 1/factor of the schedules go on to the next, which trains them for factor times as "
      "many tokens");
  }
};

struct SweepFile {
  int64_t prism_format = 1;
  std::string from, baseline, keep = "checkpoints";
  Json recipe, set = Json::object(), arms = Json::object(), grid = Json::object();
  std::vector<int64_t> seeds = {1, 2, 3};
  SearchOptions search;
  template <class Visitor>
  void visit(Visitor& v) {
    v("prism_format", prism_format, "version of this file's format");
    v("from", from, "free text: purpose of the sweep");
    v("recipe", recipe, "recipe that all runs share: a file name relative to this file, or the recipe itself");
    v("set", set, "recipe fields to override in all runs: {FIELD: value, ...}");
    v("arms", arms,
      "variations of the recipe by name: {NAME: {FIELD: value, ...}, ...}; a field seeds limits an arm to some of the "
      "sweep's seeds");
    v("grid", grid,
      "fields with several values: {FIELD: [value, ...], ...}; every arm is trained with every combination");
    v("seeds", seeds, "seeds that every variation is trained with, unless an arm has its own");
    v("baseline", baseline, "arm that the others are compared with; empty: the first");
    v("keep", keep, "what to keep of finished runs: checkpoints, or only records");
    v("search", search, "search space of --search schedules, instead of arms");
  }
};

struct SweepArm {
  std::string name;
  Recipe recipe;               ///< named like the arm; its seed is ignored
  std::vector<int64_t> seeds;  ///< those of the sweep that it is trained with
};

struct Sweep {
  std::vector<SweepArm> arms;  ///< at least one; the baseline is the first
  std::vector<int64_t> seeds;  ///< at least one, no duplicates
  bool keep_checkpoints = true;
};

/// What a run of this recipe would record about its data. @throws InputError for data that such a run would refuse.
StartRecord data_of_run(Recipe recipe);

/// Reads a sweep file.
/// @param overrides  fields for all arms, applied after the file's.
/// @throws InputError for unknown fields, values of the wrong type, recipes that cannot be trained, arms with equal
///         recipes, arms that set a seed or have one that the sweep lacks, empty lists, and arms whose data were
///         tokenized differently, because their losses cannot be compared. Messages about an arm name it.
Sweep load_sweep(const std::filesystem::path& file, const std::vector<Override>& overrides);
/// The same from a file already read. @param path  its path; the recipe's name is relative to it.
Sweep sweep_of(const SweepFile& file, const std::filesystem::path& path, const std::vector<Override>& overrides);

struct SweepRun {
  enum class State { absent, begun, finished, diverged };
  std::string name, arm;  ///< name: ARM-seedN
  Recipe recipe;
  std::filesystem::path folder;  ///< where the run is or will be
  State state = State::absent;

  /// Returns true if nothing is left to do. A diverged run counts: divergence is a result too.
  bool ended() const { return state == State::finished || state == State::diverged; }
};

/// The state of the run in an existing folder; never absent.
SweepRun::State state_of(const std::filesystem::path& run);

/// All runs, ordered by seed and then by arm, so that a machine that slows down affects all arms alike. A run is
/// identified by its recipe and seed, whatever its folder is called.
///
/// @param out      the sweep's folder, with a folder for each run.
/// @param records  a second folder to search for ended runs; may be empty or missing.
/// @throws InputError if a run's folder holds another recipe.
std::vector<SweepRun> plan_sweep(const Sweep& sweep, const std::filesystem::path& out,
                                 const std::filesystem::path& records);

}  // namespace prism
