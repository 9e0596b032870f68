#include "prism/cli/evaluation/result_folder.h"

#include <algorithm>
#include <string>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/printable.h"
#include "prism/sparse/selectors.h"

namespace prism {
namespace {

constexpr const char* kSettingsName = "settings.json";
constexpr const char* kResultsName = "results_prism.json";
constexpr const char* kSecondsName = "seconds_prism.json";
constexpr const char *kSamplesBegin = "samples_", *kSamplesEnd = "_prism.jsonl";
constexpr const char* kFingerprint = "fingerprint";  ///< of weights, tokenizer and configuration

/// The object in a file; null if there is no file. @throws InputError for anything else.
Json read_object(const std::filesystem::path& file) {
  if (!is_there(file)) return {};
  const auto name = plain_line(file.string());
  auto json = parse_json(read_file(file), name);
  PRISM_CHECK(json.is_object(), "eval", "{}: expected an object; found {}; name another folder with --out.", name,
              json.type_name());
  return json;
}

/// @throws InputError if a setting differs. A model may be somewhere else: fingerprints tell it.
void check_same(const Json& before, const Json& now, const std::string& prefix, const std::string& folder) {
  for (const auto& [name, value] : now.items()) {
    if (!before.contains(name) || name == "model") continue;
    const auto& found = before[name];
    PRISM_CHECK(!prefix.starts_with(kFingerprint) || found == value, "eval",
                "expected results of the same settings in {}; found those of other {}; name another folder with --out.",
                folder, name);
    PRISM_CHECK(name != "selector_settings" || found == value, "eval",
                "expected results of the same settings in {}; found {}; name another folder with --out.", folder,
                settings_difference(found, value));
    if (found.is_object() && value.is_object() && found != value) check_same(found, value, prefix + name + " ", folder);
    PRISM_CHECK(found == value, "eval",
                "expected results of the same settings in {}; found {}{} {} instead of {}; name another folder with "
                "--out.",
                folder, prefix, name, short_line(found.dump(), 60), short_line(value.dump(), 60));
  }
}

}  // namespace

ResultFolder::ResultFolder(std::filesystem::path path, const Json& settings)
    : path_(std::move(path)), made_(path_), lock_(path_, "eval") {
  const auto name = plain_line(path_.string());
  settings_ = read_object(path_ / kSettingsName);
  results_ = read_object(path_ / kResultsName);
  seconds_ = read_object(path_ / kSecondsName);
  check_known(name);
  check_same(settings_.is_null() ? Json::object() : settings_, settings, "", name);
  PRISM_CHECK(
      results_.is_null() || std::ranges::all_of(results_, [](const Json& member) { return member.is_object(); }),
      "eval", "{}: expected results of prism eval in {}; found different ones; name another folder with --out.", name,
      kResultsName);
  auto both = settings_.is_null() ? Json::object() : settings_;
  both.update(settings);
  if (both == settings_) return;
  settings_ = std::move(both);
  write_file(path_ / kSettingsName, to_text(settings_, 2) + "\n");
}

void ResultFolder::check_known(const std::string& name) const {
  PRISM_CHECK(settings_.is_null() || settings_.contains(kFingerprint), "eval",
              "expected the settings of an evaluation in {}/{}; found different ones; name another folder with --out.",
              name, kSettingsName);
  if (!settings_.is_null()) return;
  const auto is_answer = [](const std::filesystem::directory_entry& entry) {
    const auto file = entry.path().filename().string();
    return file == kResultsName || (file.starts_with(kSamplesBegin) && file.ends_with(kSamplesEnd));
  };
  const std::filesystem::directory_iterator files(path_);
  const auto found = std::find_if(begin(files), end(files), is_answer);
  PRISM_CHECK(
      found == end(files), "eval",
      "expected {}, which names the model, beside {} in {}; found none; restore it, or name another folder with --out.",
      kSettingsName, plain_line(found->path().filename().string()), name);
}

std::filesystem::path ResultFolder::samples(const Task& task) const {
  auto path = path_ / fmt::format("{}{}{}", kSamplesBegin, task.name, kSamplesEnd);
  // The name that the file had once.
  const auto before = path_ / fmt::format("{}{}.jsonl", kSamplesBegin, task.name);
  if (is_there(before) && !is_there(path)) std::filesystem::rename(before, path);
  return path;
}

void ResultFolder::write(const std::vector<TaskFigures>& figures) {
  results_ = results_to_json(figures, settings_, results_);
  write_file(path_ / kResultsName, to_text(results_, 2) + "\n");
}

void ResultFolder::add_seconds(const Task& task, double seconds) {
  const auto before = seconds_.find(task.name);
  const bool is_known = before != seconds_.end() && before->is_number();
  seconds_[task.name] = seconds + (is_known ? before->get<double>() : 0);
  write_file(path_ / kSecondsName, to_text(seconds_, 2) + "\n");
}

}  // namespace prism
