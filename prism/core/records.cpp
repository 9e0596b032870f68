#include "prism/core/records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace prism {
namespace {

constexpr const char* kRecordsOperation = "records";

void check_length(const std::filesystem::path& path, int64_t expected, int64_t found) {
  PRISM_CHECK(expected <= found, kRecordsOperation,
              "{}: expected at least {} bytes, as the checkpoint recorded; found {}; restore the file or start a new "
              "run.",
              path.string(), expected, found);
}

}  // namespace

RecordWriter::RecordWriter(const std::filesystem::path& path, int64_t keep_bytes) : path_(path) {
  file_ = open_output(path, O_WRONLY, kRecordsOperation);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail_write(path_, errno, kRecordsOperation);
  check_length(path, keep_bytes, status.st_size);
  // A killed writer may have left half a line. Cut it off, so that the next record does not continue it.
  bytes_ = keep_bytes >= 0 ? keep_bytes : static_cast<int64_t>(read_file(path).rfind('\n') + 1);
  if (::ftruncate(file_.get(), bytes_) != 0 || ::lseek(file_.get(), bytes_, SEEK_SET) < 0)
    fail_write(path_, errno, kRecordsOperation);
}

void RecordWriter::write(const Json& record) {
  const std::string line = record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  append(file_, line, path_, kRecordsOperation);
  bytes_ += static_cast<int64_t>(line.size());
}

int64_t RecordWriter::sync() {
  if (::fsync(file_.get()) != 0) fail_write(path_, errno, kRecordsOperation);
  return bytes_;
}

std::vector<Json> read_records(const std::filesystem::path& path, bool* is_cut, std::optional<int64_t> bytes) {
  std::string text = read_file(path);
  if (bytes) {
    check_length(path, *bytes, static_cast<int64_t>(text.size()));
    text.resize(static_cast<size_t>(*bytes));
    PRISM_CHECK(
        text.empty() || text.back() == '\n', "records",
        "{}: expected a line to end at byte {}, as the checkpoint recorded; found no line end there; restore the "
        "file or start a new run.",
        path.string(), *bytes);
  }
  if (is_cut != nullptr) *is_cut = !text.empty() && text.back() != '\n';
  std::vector<Json> records;
  size_t line = 1;
  for (size_t start = 0; start < text.size(); ++line) {
    const size_t end = text.find('\n', start);
    if (end == std::string::npos) break;
    if (end > start) {
      records.push_back(parse_json(std::string_view(text).substr(start, end - start),
                                   fmt::format("{}, line {}", path.string(), line)));
      PRISM_CHECK(records.back().is_object(), "records",
                  "{}, line {}: expected an object; found {}; restore the file, or remove the line.", path.string(),
                  line, records.back().type_name());
    }
    start = end + 1;
  }
  return records;
}

}  // namespace prism
