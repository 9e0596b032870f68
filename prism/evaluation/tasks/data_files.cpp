#include "prism/evaluation/tasks/data_files.h"

#include "prism/core/files.h"
#include "prism/data/lines.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/template/library/text_pieces.h"

namespace prism {

std::optional<std::filesystem::path> find_packed(const std::filesystem::path& path) {
  for (const char* ending : {"", ".gz", ".xz", ".zst"})
    if (auto each = std::filesystem::path(path.string() + ending); is_there(each)) return each;
  return std::nullopt;
}

std::string text_of_file(const std::filesystem::path& path) {
  LineReader reader(path.string(), kEvaluation);
  std::string text;
  while (const auto line = reader.next()) text += *line;
  return text;
}

std::vector<std::string> lines_of_file(const std::filesystem::path& path) {
  LineReader reader(path.string(), kEvaluation);
  std::vector<std::string> lines;
  while (const auto line = reader.next()) lines.emplace_back(jinja::stripped(*line));
  return lines;
}

}  // namespace prism
