#include "prism/checkpoint/run_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <span>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/machine.h"
#include "prism/core/mapped_file.h"
#include "prism/core/random.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpoints = "checkpoints";

std::string prefix_of(CheckpointKind kind) {
  switch (kind) {
    case CheckpointKind::step:
      return "step-";
    case CheckpointKind::best:
      return "best-";
    case CheckpointKind::weights:
      return "weights-";
  }
  throw InternalError("checkpoint", "a kind without a name");
}

/// The step of a checkpoint by its name; std::nullopt if the name is not of this kind.
std::optional<int64_t> step_of(const std::string& name, CheckpointKind kind) {
  const std::string prefix = prefix_of(kind);
  int64_t step = 0;
  if (!name.starts_with(prefix)) return std::nullopt;
  const auto [end, code] = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), step);
  return code == std::errc() && end == name.data() + name.size() ? std::optional(step) : std::nullopt;
}

bool is_temporary(const std::string& name) {
  return name.starts_with('.') && name.ends_with(".tmp");
}

/// Renames a checkpoint before deleting it, so that a half-deleted one never has its name.
void discard(const fs::path& checkpoint) {
  const fs::path away = checkpoint.parent_path() / fmt::format(".{}.discarded.tmp", checkpoint.filename().string());
  fs::remove_all(away);
  fs::rename(checkpoint, away);
  fs::remove_all(away);
}

/// Gives a complete checkpoint its name. An existing checkpoint of that name is exchanged atomically if the file system
/// supports it.
void publish(const fs::path& temporary, const fs::path& name) {
  if (fs::exists(name)) {
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, name.c_str(), RENAME_EXCHANGE) == 0) {
      fs::remove_all(temporary);
      return;
    }
    discard(name);
  }
  std::error_code code;
  fs::rename(temporary, name, code);
  if (code)
    throw FailedError(
        "checkpoint",
        fmt::format("expected to rename a checkpoint to {}; found: {}; make the folder writable and resume the run.",
                    name.string(), code.message()));
}

/// Fingerprint of the names and bytes of a folder's safetensors files.
std::string tensors_fingerprint(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  uint64_t hash = 0;
  for (const auto& path : files) {
    const MappedFile file(path);
    const std::string name = path.filename().string();
    hash = mix64(hash ^ hash_bytes(std::as_bytes(std::span(name))));
    hash = mix64(hash ^ hash_bytes(file.bytes()));
  }
  return fmt::format("{:016x}", hash);
}

/// Converts a state of an earlier format (run_state.h) to the present one.
void update_format(Json& json, const fs::path& file) {
  const bool first = json["prism_format"] == 1;
  for (const char* later : {"recipe_fingerprint", "tensors_fingerprint"})
    if (!json.contains(later)) json[later] = "";
  json["prism_format"] = RunState().prism_format;
  for (const std::string which : {"best", "last"}) {
    const std::string before = which + (first ? "_val_loss" : "_figure");
    const auto found = json.find(before);
    if (found == json.end() && !first) continue;
    const Json value = found == json.end() ? Json() : *found;
    PRISM_CHECK(value.is_number(), "checkpoint", "{}: expected a number as {}; found {}; restore the file.",
                file.string(), before, to_text(value));
    json.erase(before);
    if (!first || value.get<double>() >= 0) json[which + "_metric"] = value;
  }
}

}  // namespace

CheckpointStore::CheckpointStore(const fs::path& run) : folder_(run / kCheckpoints) {}

fs::path CheckpointStore::path(CheckpointKind kind, int64_t step) const {
  return folder_ / fmt::format("{}{:08}", prefix_of(kind), step);
}

void CheckpointStore::sweep() {
  PRISM_CHECK(!fs::exists(folder_) || fs::is_directory(folder_), "checkpoint",
              "expected a folder or a free name at {}; found a file; move it away.", folder_.string());
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    if (is_temporary(entry.path().filename().string())) fs::remove_all(entry.path(), ignored);
  }
}

void CheckpointStore::save(CheckpointKind kind, int64_t step, const std::function<void(const fs::path&)>& write) {
  if (!fs::exists(folder_)) {
    make_folder(folder_);
    sync_folder(folder_.parent_path());
  }
  const fs::path final_path = path(kind, step);
  const fs::path temporary = folder_ / fmt::format(".{}{:08}.tmp", prefix_of(kind), step);
  fs::remove_all(temporary);  // left by a killed process
  make_folder(temporary);
  try {
    write(temporary);
    sync_folder(temporary);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(temporary, ignored);
    throw;
  }
  publish(temporary, final_path);
  sync_folder(folder_);
}

void CheckpointStore::prune(CheckpointKind kind, int64_t keep) {
  const auto all = steps(kind);
  for (size_t i = 0; i + static_cast<size_t>(keep) < all.size(); ++i) discard(path(kind, all[i]));
}

void CheckpointStore::discard_after(CheckpointKind kind, int64_t step) {
  for (const int64_t found : steps(kind))
    if (found > step) discard(path(kind, found));
}

std::vector<int64_t> CheckpointStore::steps(CheckpointKind kind) const {
  std::vector<int64_t> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored))
    if (const auto step = step_of(entry.path().filename().string(), kind)) found.push_back(*step);
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<fs::path> CheckpointStore::foreign_entry() const {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    const auto is_of = [&](CheckpointKind kind) {
      const auto step = step_of(name, kind);
      return step && path(kind, *step).filename() == name;
    };
    if (is_temporary(name)) continue;
    if (!is_of(CheckpointKind::step) && !is_of(CheckpointKind::best) && !is_of(CheckpointKind::weights))
      return entry.path();
    for (const auto& member : fs::directory_iterator(entry.path(), ignored))
      if (member.is_directory(ignored)) return member.path();  // a checkpoint has files alone
  }
  return std::nullopt;
}

std::optional<fs::path> last_checkpoint(const fs::path& run) {
  const CheckpointStore store(run);
  const auto steps = store.steps(CheckpointKind::step);
  if (steps.empty()) return std::nullopt;
  return store.path(CheckpointKind::step, steps.back());
}

std::optional<fs::path> run_of_checkpoint(const fs::path& folder) {
  const fs::path checkpoints = fs::weakly_canonical(folder).parent_path();
  if (checkpoints.filename() != kCheckpoints) return std::nullopt;
  return checkpoints.parent_path();
}

void save_run_state(const fs::path& folder, RunState state, const std::vector<NamedTensor>& optimizer) {
  write_tensors(folder / "optimizer.safetensors", optimizer);
  state.tensors_fingerprint = tensors_fingerprint(folder);
  write_file(folder / "state.json", to_text(fields_to_json(state), 2) + "\n");
}

RunState load_run_state(const fs::path& folder) {
  const auto file = folder / "state.json";
  Json json = read_json(file.string());
  const Json format = json.is_object() ? json.value("prism_format", Json()) : Json();
  const bool earlier = format == 1 || format == 2;
  PRISM_CHECK(earlier || !format.is_number() || format == RunState().prism_format, "checkpoint",
              "{}: expected prism_format {}; found {}; resume it with the version of prism that wrote it.",
              file.string(), RunState().prism_format, to_text(format));
  if (earlier) update_format(json, file);
  auto state = fields_from_json<RunState>(json, file.string());
  const Json known = fields_to_json(state);
  for (const auto& [name, value] : known.items())
    PRISM_CHECK(json.contains(name), "checkpoint", "{}: expected \"{}\"; found none; restore the file.", file.string(),
                name);
  for (const auto& [name, value] : json.items())
    PRISM_CHECK(!value.is_null(), "checkpoint", "{}: expected a value of \"{}\"; found null; restore the file.",
                file.string(), name);
  for (const auto& [name, value] : {std::pair{"recipe_fingerprint", &state.recipe_fingerprint},
                                    {"tensors_fingerprint", &state.tensors_fingerprint}})
    PRISM_CHECK(earlier || !value->empty(), "checkpoint", "{}: expected a {}; found an empty one; restore the file.",
                file.string(), name);
  PRISM_CHECK(state.records_bytes > 0, "checkpoint",
              "{}: expected records_bytes of at least 1; found {}; restore the file.", file.string(),
              state.records_bytes);
  for (const int64_t count : {state.step, state.trained, state.windows, state.loss_count})
    PRISM_CHECK(count >= 0, "checkpoint", "{}: expected counts of at least 0; found {}; restore the file.",
                file.string(), count);
  for (const double amount : {state.seconds, state.step_seconds, state.loss_variance})
    PRISM_CHECK(amount >= 0, "checkpoint",
                "{}: expected times and variances of at least 0; found {}; restore the file.", file.string(), amount);
  PRISM_CHECK(state.loss_count <= state.step, "checkpoint",
              "{}: expected a loss_count of at most the {} steps; found {}; restore the file.", file.string(),
              state.step, state.loss_count);
  PRISM_CHECK(state.threads >= 0 && state.threads <= kMostThreads, "checkpoint",
              "{}: expected threads from 0 to {}; found {}; restore the file.", file.string(), kMostThreads,
              state.threads);
  return state;
}

void check_tensors(const fs::path& folder, const RunState& state) {
  PRISM_CHECK(state.tensors_fingerprint.empty() || state.tensors_fingerprint == tensors_fingerprint(folder),
              "checkpoint",
              "expected the weights and the optimizer's state of step {} in {}; found others; restore the "
              "files.",
              state.step, folder.string());
}

void load_optimizer(const fs::path& folder, const std::vector<NamedTensor>& optimizer) {
  read_tensors(SafetensorsSource(folder / "optimizer.safetensors"), optimizer);
}

}  // namespace prism
