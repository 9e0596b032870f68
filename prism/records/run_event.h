// One line of a run's records: its head and the record of its kind.
//
//   const RunEvent event = read_run_event(json, "runs/novels/records.jsonl, record 7", Metric().name);
//   if (const auto* train = std::get_if<TrainRecord>(&event.record)) plot(event.head.trained.value(), train->loss);
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "prism/core/json.h"
#include "prism/records/run_records.h"

namespace prism {

/// Name of the file in a run's folder that contains its records.
constexpr const char* kRunRecordsName = "records.jsonl";

/// A record of a kind that this version does not know. All readers skip it.
struct UnknownRecord {};

using RunRecord =
    std::variant<UnknownRecord, StartRecord, ResumeRecord, TrainRecord, EvalRecord, DiagnosticsRecord, WarningRecord,
                 SampleRecord, DivergedRecord, TextLossRecord, ClassificationRecord, AttentionDistance, EndRecord>;

struct RunEvent {
  RecordHead head;
  RunRecord record;
};

/// {"kind": ..., head..., fields of the record...}, each in the order of its visitor. A field of the record replaces a
/// field of the head with the same name. @throws InternalError for an UnknownRecord.
Json run_event_to_json(const RunEvent& event);

/// Ignores unknown kinds and fields. null counts as absent; in a list it is NaN.
/// @param where   the file and the position in it, for messages.
/// @param metric  the name of the run's metric, as in its start record.
/// @throws InputError for a field of the wrong type.
RunEvent read_run_event(const Json& json, std::string_view where, const std::string& metric);

/// Reads records in order, and remembers what the first one says about the others.
class RunEventReader {
 public:
  explicit RunEventReader(std::filesystem::path file) : file_(std::move(file)) {}
  /// @throws InputError like read_run_event(), and for a start record of another format or after other records.
  RunEvent read(const Json& json);
  /// Position of the last record read, for messages.
  std::string where() const;

 private:
  std::filesystem::path file_;
  size_t number_ = 0;
  std::string metric_ = Metric().name;
};

/// All complete records of a run, or those in its first `bytes` (core/records.h).
/// @throws InputError like read_records(), read_run_event() and RunEventReader::read().
std::vector<RunEvent> read_run_events(const std::filesystem::path& run, std::optional<int64_t> bytes = {});
/// The last complete record; std::nullopt if there is none.
std::optional<RunEvent> last_run_event(const std::filesystem::path& run);

}  // namespace prism
