#include "prism/records/run_event.h"

#include <fmt/format.h>

#include <cmath>
#include <type_traits>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/records.h"

namespace prism {
namespace {

/// Visitor that reads a struct's fields from an object, as far as they are present.
class RecordFields {
 public:
  RecordFields(const Json& json, std::string_view where) : json_(json), where_(where) {}

  template <class T>
  void operator()(const char* name, T& value, const char*) {
    const auto member = json_.find(name);
    if (member != json_.end() && !member->is_null()) read(name, *member, value);
  }

 private:
  void read(const char* name, const Json& json, double& value) {
    if (!json.is_number()) fail(name, "a number", json);
    value = json.get<double>();
  }
  void read(const char* name, const Json& json, int64_t& value) {
    if (!json.is_number()) fail(name, "a number", json);
    const auto number = json.get<double>();
    if (!(std::abs(number) < 9e18)) fail(name, "a whole number", json);
    value = json.is_number_integer() ? json.get<int64_t>() : static_cast<int64_t>(number);
  }
  void read(const char* name, const Json& json, std::string& value) {
    if (!json.is_string()) fail(name, "text", json);
    value = json.get<std::string>();
  }
  void read(const char* name, const Json& json, bool& value) {
    if (!json.is_boolean()) fail(name, "true or false", json);
    value = json.get<bool>();
  }
  template <class T>
  void read(const char* name, const Json& json, std::optional<T>& value) {
    read(name, json, value.emplace());
  }
  void read(const char* name, const Json& json, std::vector<double>& list) {
    if (!json.is_array()) fail(name, "a list", json);
    list.clear();
    for (const auto& value : json) {
      if (!value.is_number() && !value.is_null()) fail(name, "a list of numbers", value);
      list.push_back(value.is_null() ? NAN : value.get<double>());
    }
  }
  void read(const char* name, const Json& json, std::vector<std::pair<double, int64_t>>& list) {
    if (!json.is_array()) fail(name, "a list", json);
    list.clear();
    for (const auto& pair : json) {
      if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number()) fail(name, "a list of pairs of numbers", pair);
      auto& [number, count] = list.emplace_back(NAN, 0);
      if (!pair[0].is_null()) read(name, pair[0], number);
      read(name, pair[1], count);
    }
  }
  void read(const char* name, const Json& json, std::vector<std::vector<int64_t>>& rows) {
    if (!json.is_array()) fail(name, "a list", json);
    rows.clear();
    for (const auto& row : json) {
      if (!row.is_array()) fail(name, "a list of lists of numbers", row);
      auto& numbers = rows.emplace_back();
      for (const auto& number : row) read(name, number, numbers.emplace_back());
    }
  }
  template <class T>
  void read(const char* name, const Json& json, std::vector<T>& list) {
    if (!json.is_array()) fail(name, "a list", json);
    list.clear();
    for (const auto& element : json) {
      if (!element.is_object()) fail(name, "a list of objects", element);
      read(name, element, list.emplace_back());
    }
  }
  template <class T>
  requires detail::HasFields<T>
  void read(const char* name, const Json& json, T& value) {
    if (!json.is_object()) fail(name, "an object", json);
    RecordFields inner(json, where_);
    value.visit(inner);
  }

  [[noreturn]] void fail(const char* name, std::string_view expected, const Json& found) const {
    throw InputError("records", fmt::format("{}: expected {} as {}; found {}; correct the line or leave the run out.",
                                            where_, expected, name, to_text(found)));
  }

  const Json& json_;
  std::string_view where_;
};

/// Makes `record` the alternative of this kind, if there is one.
template <size_t I = 1>
void choose(RunRecord& record, std::string_view kind) {
  if constexpr (I < std::variant_size_v<RunRecord>) {
    if (kind == std::variant_alternative_t<I, RunRecord>::kKind)
      record.emplace<I>();
    else
      choose<I + 1>(record, kind);
  }
}

struct Kind {
  std::string kind;
  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind, "of the record");
  }
};

}  // namespace

Json run_event_to_json(const RunEvent& event) {
  return std::visit(
      [&](const auto& record) {
        using Record = std::decay_t<decltype(record)>;
        if constexpr (std::is_same_v<Record, UnknownRecord>) {
          PRISM_ASSERT(false, "records", "a record of a known kind");
          return Json();
        } else {
          Json json = {{"kind", Record::kKind}};
          json.update(fields_to_json(event.head));
          json.update(fields_to_json(record));
          return json;
        }
      },
      event.record);
}

bool is_metric_name(std::string_view name) {
  if (name == Metric().name) return true;
  if (name.empty() || name.size() > 40 ||
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string_view::npos)
    return false;
  EvalRecord eval;
  EndRecord end;
  end.peak_memory_bytes = 0;
  for (const auto unit : {TrainingUnit::tokens, TrainingUnit::examples}) {
    const RecordHead head = {0, {unit, 0}, 0};
    eval.measured = {unit, 0};
    end.rate = {unit, 0};
    for (const RunRecord& record : {RunRecord(eval), RunRecord(end)})
      if (run_event_to_json({head, record}).contains(std::string(name))) return false;
  }
  return true;
}

RunEvent read_run_event(const Json& json, std::string_view where, const std::string& metric) {
  RecordFields fields(json, where);
  Kind kind;
  kind.visit(fields);
  RunEvent event;
  choose(event.record, kind.kind);
  if (!std::holds_alternative<UnknownRecord>(event.record)) event.head.visit(fields);
  std::visit(
      [&](auto& record) {
        if constexpr (requires { record.metric = metric; }) record.metric = metric;
        if constexpr (requires { record.visit(fields); }) record.visit(fields);
      },
      event.record);
  return event;
}

RunEvent RunEventReader::read(const Json& json) {
  ++number_;
  RunEvent event = read_run_event(json, where(), metric_);
  const auto* start = std::get_if<StartRecord>(&event.record);
  if (start == nullptr) return event;
  PRISM_CHECK(number_ == 1, "records",
              "{}: expected a record of kind \"run\" at the beginning only; found a second one; leave this run out, or "
              "keep the records of one run in its file.",
              where());
  PRISM_CHECK(start->prism_format == StartRecord().prism_format, "records",
              "{}: expected prism_format {}; found {}; use a newer prism.", where(), StartRecord().prism_format,
              start->prism_format);
  metric_ = start->metric.value_or(Metric()).name;
  return event;
}

std::string RunEventReader::where() const {
  return fmt::format("{}, record {}", file_.string(), number_);
}

std::vector<RunEvent> read_run_events(const std::filesystem::path& run, std::optional<int64_t> bytes) {
  const auto file = run / kRunRecordsName;
  RunEventReader reader(file);
  std::vector<RunEvent> events;
  for (const auto& json : read_records(file, nullptr, bytes)) events.push_back(reader.read(json));
  return events;
}

std::optional<RunEvent> last_run_event(const std::filesystem::path& run) {
  const auto file = run / kRunRecordsName;
  if (!is_there(file)) return std::nullopt;
  const auto records = read_records(file);
  if (records.empty()) return std::nullopt;
  RunEventReader reader(file);
  auto event = reader.read(records.front());  // names the metric of the others
  if (records.size() > 1) event = reader.read(records.back());
  return event;
}

}  // namespace prism
