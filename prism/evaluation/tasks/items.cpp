#include "prism/evaluation/tasks/items.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/data/lines.h"
#include "prism/data/text_files.h"
#include "prism/evaluation/tasks/data_files.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/template/library/text_pieces.h"

namespace prism {
namespace {

std::filesystem::path find_file(const Task& task, const std::string& data) {
  if (data == "-" || (is_there(data) && (task.reads_texts || !std::filesystem::is_directory(data)))) return data;
  PRISM_CHECK(!task.files.empty(), kEvaluation,
              "expected a {} of your own for the task {}; found {}; name {} with --data.",
              task.reads_texts ? "folder" : "file", task.name,
              is_there(data) ? "the folder " + plain_line(data) : "nothing at " + plain_line(data),
              task.reads_texts ? "one with texts" : "a .jsonl file");
  for (const auto& file : task.files)
    if (const auto found = find_packed(std::filesystem::path(data) / file)) return *found;
  throw InputError(kEvaluation,
                   fmt::format("expected {} in {}, plain or packed, for the task {}; found none; put it there, or name "
                               "another folder with --data.",
                               join_names(task.files, "or"), plain_line(data), task.name));
}

/// Rows that have no label of their own get that of PIQA's second file.
void add_labels(const Task& task, const std::filesystem::path& file, std::vector<Json>& rows) {
  if (task.labels.empty() || rows.empty() || rows.front().contains("label")) return;
  const auto path = find_packed(file.parent_path() / task.labels);
  PRISM_CHECK(path, kEvaluation, "expected {} beside {}; found none; put the task's labels there.", task.labels,
              plain_line(file.string()));
  const auto labels = lines_of_file(*path);
  PRISM_CHECK(labels.size() >= rows.size(), kEvaluation,
              "expected a label for each of {} in {}; found {}; take both from the same release.",
              counted(std::ssize(rows), "row"), plain_line(path->string()), labels.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i]["label"] = labels[i];
}

/// A whole book in the row would make files of answers as large as the books.
void describe_text(Json& row) {
  const auto text = row["page"].get<std::string>();
  row.erase("page");
  row["bytes"] = text.size();
  row["fingerprint"] = fmt::format("{:016x}", hash_bytes(std::as_bytes(std::span(text))));
}

/// The first `limit` items of a file, or of a folder of texts.
std::vector<TaskItem> items_of(const Task& task, const std::filesystem::path& file, int64_t limit) {
  std::vector<Json> rows;
  std::vector<std::string> places;
  const auto is_full = [&] { return limit > 0 && std::ssize(rows) >= limit; };
  if (task.reads_texts) {
    TextOptions options;
    options.has_flags = false;
    for (const auto& text : list_text_files({file.string()}, options)) {
      if (is_full()) break;
      if (text.rows) continue;
      rows.push_back(
          {{"page", text_of_file(text.path)}, {"file", std::filesystem::path(text.path).filename().string()}});
      places.push_back(plain_line(text.path));
    }
  } else if (task.kind == TaskKind::rolling && !file.string().ends_with(".jsonl")) {
    for (auto& page : wikitext_pages(text_of_file(file))) {
      if (is_full()) break;
      rows.push_back({{"page", std::move(page)}});
      places.push_back(fmt::format("{}, document {}", plain_line(file.string()), rows.size()));
    }
  } else {
    JsonLines reader(file.string(), kEvaluation);
    while (!is_full()) {
      auto row = reader.next();
      if (!row) break;
      rows.push_back(std::move(*row));
      places.push_back(reader.place());
    }
    add_labels(task, file, rows);
  }
  PRISM_CHECK(!rows.empty(), kEvaluation, "expected rows in {}; found none; name the file of the task {}.",
              plain_line(file.string()), task.name);
  std::vector<TaskItem> items;
  for (size_t i = 0; i < rows.size(); ++i) {
    try {
      items.push_back(task.item(rows[i]));
    } catch (const InputError& error) {
      throw InputError(kEvaluation, fmt::format("{}: {}", places[i], error.sentence()));
    }
    if (task.reads_texts || task.kind == TaskKind::halves) describe_text(items.back().row);
  }
  return items;
}

}  // namespace

std::vector<std::string> wikitext_pages(const std::string& text) {
  std::vector<std::string> pages;
  std::vector<std::string_view> lines;
  const auto end_page = [&] {
    pages.push_back(fmt::format("{}", fmt::join(lines, "\n")));
    lines.clear();
  };
  for (const auto line : jinja::split_at(text, "\n")) {
    // A heading of the first level has one equals sign at each side, those below have more, with spaces between.
    const auto heading = jinja::stripped(line, nullptr, true, true);
    const bool opens = heading.starts_with("= ") && !heading.starts_with("= =") && heading.size() > 2 &&
                       heading.ends_with(" =") && !heading.ends_with("= =");
    if (opens && std::ranges::any_of(
                     lines, [](std::string_view each) { return !jinja::stripped(each, nullptr, true, true).empty(); }))
      end_page();
    else if (opens)
      lines.clear();
    lines.push_back(line);
  }
  end_page();
  return pages;
}

std::vector<TaskItem> read_items(const Task& task, const std::string& data, const ItemOptions& options) {
  for (const auto& [name, value] : {std::pair{"limit", options.limit}, {"shots", options.shots}})
    PRISM_CHECK(value >= 0, kEvaluation, "expected {} of 0 or more; found {}; change it.", name, value);
  auto items = items_of(task, find_file(task, data), options.limit);
  if (options.shots == 0) return items;
  PRISM_CHECK(task.kind == TaskKind::choice || task.kind == TaskKind::completion, kEvaluation,
              "expected a task that asks questions with --shots; found {}; leave it out.", task.name);
  PRISM_CHECK(!options.shots_from.empty(), kEvaluation,
              "expected the file of the shots; found none; name one with --shots-from.");
  const auto solved = items_of(task, options.shots_from, options.shots);
  PRISM_CHECK(std::ssize(solved) == options.shots, kEvaluation, "expected {} of shots in {}; found {}; lower --shots.",
              counted(options.shots, "row"), plain_line(options.shots_from), solved.size());
  std::string shots;
  for (const auto& each : solved) shots += shot_text(each) + "\n\n";
  for (auto& item : items)
    for (auto& query : item.queries) query.context = shots + query.context;
  return items;
}

}  // namespace prism
