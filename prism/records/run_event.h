// A line of a run's records: its head and what its kind holds.
//
//   const RunEvent event = read_run_event(json, "runs/novels/records.jsonl, record 7", Figure().name);
//   if (const auto* train = std::get_if<TrainRecord>(&event.record)) plot(event.head.tokens, train->loss);
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "prism/core/json.h"
#include "prism/records/run_records.h"

namespace prism {

/// The file in a run's folder that its records are in.
constexpr const char* kRunRecordsName = "records.jsonl";

/// Of a kind that this version does not know: passed over by all who read.
struct UnknownRecord {};

using RunRecord =
    std::variant<UnknownRecord, StartRecord, ResumeRecord, TrainRecord, EvalRecord, DiagnosticsRecord, WarningRecord,
                 SampleRecord, DivergedRecord, TextLossRecord, AttentionDistance, EndRecord>;

struct RunEvent {
  RecordHead head;
  RunRecord record;
};

/// {"kind": ..., head..., fields of the record...}, each as its visitor lists it. A record's own field replaces one of
/// the head that has its name. @throws InternalError for an UnknownRecord.
Json run_event_to_json(const RunEvent& event);

/// Kinds and fields that are not known are passed over; null counts as absent, in a list as NaN.
/// @param where   for messages: the file and the place in it.
/// @param figure  the name of the run's figure, as its start record says.
/// @throws InputError for a field of the wrong type.
RunEvent read_run_event(const Json& json, std::string_view where, const std::string& figure);

/// Reads records one after the other, and remembers what the first says of the others.
class RunEventReader {
 public:
  explicit RunEventReader(std::filesystem::path file) : file_(std::move(file)) {}
  /// @throws InputError as read_run_event(), for a start record of another format or after other records.
  RunEvent read(const Json& json);
  /// For messages about the record that was read last.
  std::string where() const;

 private:
  std::filesystem::path file_;
  size_t number_ = 0;
  std::string figure_ = Figure().name;
};

/// All whole records of a run, or those in its first `bytes` (core/records.h).
/// @throws InputError as read_records(), read_run_event() and RunEventReader::read().
std::vector<RunEvent> read_run_events(const std::filesystem::path& run, std::optional<int64_t> bytes = {});
/// The last whole record; absent: there is none.
std::optional<RunEvent> last_run_event(const std::filesystem::path& run);

}  // namespace prism
