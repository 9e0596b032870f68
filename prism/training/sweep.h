// A sweep: one recipe in variations (arms), each with the same seeds, so that their differences can be paired.
//
//   {"recipe": "base.json", "set": {"train.tokens": "4M"}, "seeds": [1, 2, 3], "baseline": "uniform",
//    "arms": {"uniform": {"model.schedule": "8x8"}, "progressive": {"model.schedule": "2x2,4x2,8x4"}}}
//
//   const Sweep sweep = load_sweep("sweep.json", {});
//   for (const SweepRun& run : plan_sweep(sweep, "runs/sweep", "")) ...  // what is done, what is left
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
  ScheduleSpace space;  ///< its fields are this one's
  int64_t candidates = 27, rungs = 3, factor = 3;
  template <class Visitor>
  void visit(Visitor& v) {
    space.visit(v);
    v("candidates", candidates,
      "schedules in the first rung; if the space has more, they are sampled from it with the first seed");
    v("rungs", rungs, "rounds of training; runs of the last one train for train.tokens");
    v("factor", factor, "each rung keeps the best 1/factor of the schedules and multiplies the tokens by factor");
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
    v("from", from, "purpose of the sweep");
    v("recipe", recipe, "recipe that all runs share: a file name relative to this file, or the recipe itself");
    v("set", set, "recipe fields to override in all runs: {FIELD: value, ...}");
    v("arms", arms, "variations of the recipe by name: {NAME: {FIELD: value, ...}, ...}");
    v("grid", grid,
      "fields with several values: {FIELD: [value, ...], ...}; every arm is trained with every combination");
    v("seeds", seeds, "seeds that every variation is trained with");
    v("baseline", baseline, "arm that the others are compared with; empty: the first");
    v("keep", keep, "what to keep of finished runs: checkpoints, or only records");
    v("search", search, "search space of --search schedules, instead of arms");
  }
};

struct SweepArm {
  std::string name;
  Recipe recipe;  ///< called like the arm; its seed counts for nothing
};

struct Sweep {
  std::vector<SweepArm> arms;  ///< at least one; the baseline is the first
  std::vector<int64_t> seeds;  ///< at least one, each once
  bool keep_checkpoints = true;
};

/// What a run of this recipe would record of its data. @throws InputError for data that such a run would refuse.
StartRecord data_of_run(Recipe recipe);

/// Reads a sweep's file.
/// @param overrides  fields for all arms, applied after the file's.
/// @throws InputError naming the arm for fields that a recipe does not have, values of the wrong type, recipes that no
///         training can use, arms of equal recipes, arms with seeds of their own, empty lists, or arms whose data come
///         from different tokenizers, so that their losses cannot be compared.
Sweep load_sweep(const std::filesystem::path& file, const std::vector<Override>& overrides);
/// The same of a file that was read. @param path  its place: the recipe's name is relative to it.
Sweep sweep_of(const SweepFile& file, const std::filesystem::path& path, const std::vector<Override>& overrides);

struct SweepRun {
  enum class State { absent, begun, finished, diverged };
  std::string name, arm;  ///< name: ARM-seedN
  Recipe recipe;
  std::filesystem::path folder;  ///< where it is, or will be
  State state = State::absent;

  /// Whether there is nothing more to do: to diverge is a result too.
  bool ended() const { return state == State::finished || state == State::diverged; }
};

/// Of a run's folder: never absent.
SweepRun::State state_of(const std::filesystem::path& run);

/// All runs, seed by seed, so that a machine that slows down slows all arms alike. A run is known by its recipe and
/// seed, whatever its folder is called.
///
/// @param out      the sweep's folder, with a folder for each run.
/// @param records  a second folder in which runs that ended are looked for; may be empty or absent.
/// @throws InputError if a run's folder holds another recipe.
std::vector<SweepRun> plan_sweep(const Sweep& sweep, const std::filesystem::path& out,
                                 const std::filesystem::path& records);

}  // namespace prism
