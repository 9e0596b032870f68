#include "prism/evaluation/tasks/items.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/data/byte_stream.h"
#include "prism/data/lines.h"
#include "prism/data/text_files.h"
#include "prism/evaluation/tasks/data_files.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/evaluation/text_windows.h"
#include "prism/template/library/text_pieces.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

fs::path find_file(const Task& task, const std::string& data) {
  if (data == "-" || (is_there(data) && (task.reads_texts || !fs::is_directory(data)))) return data;
  PRISM_CHECK(!task.files.empty(), kEvaluation,
              "expected a {} of your own for the task {}; found {}; name {} with --data.",
              task.reads_texts ? "folder" : "file", task.name,
              is_there(data) ? "the folder " + plain_line(data) : "nothing at " + plain_line(data),
              task.reads_texts ? "one with texts" : "a .jsonl file");
  for (const auto& file : task.files)
    if (const auto found = find_packed(fs::path(data) / file)) return *found;
  // The folder of the task itself, by its name or that of a link to it.
  for (const fs::path file : task.files) {
    const auto found = find_packed(fs::path(data) / file.filename());
    const auto is_name = [&](const fs::path& folder) { return folder.filename() == file.parent_path(); };
    if (found && (is_name(found->parent_path()) || is_name(fs::canonical(*found).parent_path()))) return *found;
  }
  const auto folder = (fs::path(data) / task.files.front()).parent_path();
  const auto archive = folder / (folder.filename().string() + ".tar.xz");
  PRISM_CHECK(!is_there(archive), kEvaluation,
              "expected {} in {}, plain or packed, for the task {}; found the archive {}; unpack it with tar -xJf, and "
              "name the folder of its files with --data.",
              join_names(task.files, "or"), plain_line(data), task.name, plain_line(archive.string()));
  throw InputError(kEvaluation, fmt::format("expected {} in {}, plain or packed, for the task {}; found none; put it "
                                            "there, or name another folder with --data.",
                                            join_names(task.files, "or"), plain_line(data), task.name));
}

/// Rows of a file, and where each of them is.
struct PlacedRows {
  std::vector<Json> rows;
  std::vector<std::string> places;

  void add(Json row, std::string place) {
    rows.push_back(std::move(row));
    places.push_back(std::move(place));
  }
};

/// Rows without labels of their own get those of the file beside theirs: valid-labels.lst beside valid.jsonl.
/// @param are_all  the rows are all of their file.
void add_labels(const fs::path& file, bool are_all, PlacedRows& placed) {
  auto& [rows, places] = placed;
  if (rows.empty() || std::ranges::any_of(rows, [](const Json& row) { return row.contains("label"); })) return;
  const auto name = fs::path(without_packed_ending(file.filename().string())).stem().string() + "-labels.lst";
  const auto path = find_packed(file.parent_path() / name);
  PRISM_CHECK(path, kEvaluation,
              "expected the labels of the rows of {}: a member label in each, or the file {} beside it; found neither; "
              "add them, or name another file.",
              plain_line(file.string()), name);
  const auto labels = lines_of_file(*path);
  PRISM_CHECK(are_all ? labels.size() == rows.size() : labels.size() >= rows.size(), kEvaluation,
              "expected a label for each of {} in {}; found {}; take both from the same release.",
              counted(std::ssize(rows), "row"), plain_line(path->string()), labels.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i]["label"] = labels[i];
    places[i] += fmt::format(", or its label in {}, line {}", name, i + 1);
  }
}

/// A whole book in the row would make files of answers as large as the books.
void describe_text(Json& row) {
  const auto text = row["page"].get<std::string>();
  row.erase("page");
  row["bytes"] = text.size();
  row["fingerprint"] = fmt::format("{:016x}", hash_bytes(std::as_bytes(std::span(text))));
}

/// The text files of a folder, or one of them.
void add_texts(const fs::path& folder, const std::function<bool()>& is_full, PlacedRows& placed) {
  TextOptions options;
  options.has_flags = false;
  for (const auto& text : list_text_files({folder.string()}, options)) {
    if (is_full()) return;
    if (text.rows) continue;
    placed.add({{"page", text_of_file(text.path)}, {"file", fs::path(text.path).filename().string()}},
               plain_line(text.path));
  }
}

/// The first `limit` rows of a file, or of a folder of texts.
PlacedRows rows_of(const Task& task, const fs::path& file, int64_t limit) {
  PlacedRows placed;
  const auto is_full = [&] { return limit > 0 && std::ssize(placed.rows) >= limit; };
  const auto name = file == "-" ? "standard input" : plain_line(file.string());
  if (task.reads_texts) {
    add_texts(file, is_full, placed);
  } else if (task.kind == TaskKind::halves) {
    auto text = text_of_file(file);
    if (text.ends_with('\n')) text.pop_back();  // as llama.cpp reads a file
    placed.add({{"page", std::move(text)}, {"file", file.filename().string()}}, name);
  } else if (task.is_text() && !without_packed_ending(file.string()).ends_with(".jsonl")) {
    for (auto& page : wikitext_pages(text_of_file(file)))
      if (!is_full())
        placed.add({{"page", std::move(page)}}, fmt::format("{}, document {}", name, placed.rows.size() + 1));
  } else {
    JsonLines reader(file.string(), kEvaluation);
    while (!is_full()) {
      auto row = reader.next();
      if (!row) break;
      placed.add(std::move(*row), reader.place());
    }
    if (task.has_label_file) add_labels(file, !is_full(), placed);
  }
  PRISM_CHECK(!placed.rows.empty(), kEvaluation, "expected {} in {}; found none; name the {} of the task {}.",
              task.reads_texts ? "text files" : "rows", name, task.reads_texts ? "folder" : "file", task.name);
  return placed;
}

/// The first `limit` items of a file, or of a folder of texts.
std::vector<TaskItem> items_of(const Task& task, const fs::path& file, int64_t limit) {
  const auto [rows, places] = rows_of(task, file, limit);
  std::vector<TaskItem> items;
  for (size_t i = 0; i < rows.size(); ++i) {
    try {
      items.push_back(task.item(rows[i]));
    } catch (const InputError& error) {
      throw InputError(kEvaluation, fmt::format("{}: {}", places[i], error.sentence()));
    }
    if (task.names_file()) describe_text(items.back().row);
  }
  return items;
}

}  // namespace

std::vector<TaskItem> text_items(const Task& task, TextSource& source, int64_t documents) {
  std::vector<TaskItem> items;
  std::string text;
  read_documents(source, documents, kEvaluation, [&](const Document& piece) {
    text += piece.text;
    if (!piece.last) return true;
    items.push_back(task.item({{"page", std::exchange(text, {})}}));
    describe_text(items.back().row);
    return true;
  });
  return items;
}

std::vector<std::string> wikitext_pages(const std::string& text) {
  std::vector<std::string> pages;
  std::vector<std::string_view> lines;
  const auto end_page = [&] {
    pages.push_back(fmt::format("{}", fmt::join(lines, "\n")));
    lines.clear();
  };
  for (const auto line : jinja::split_at(text, "\n")) {
    // A heading of the first level has one equals sign at each side, those below have more, with spaces between.
    const auto heading = jinja::stripped(line);
    const bool opens = heading.starts_with("= ") && !heading.starts_with("= =") && heading.size() > 2 &&
                       heading.ends_with(" =") && !heading.ends_with("= =");
    if (opens && std::ranges::any_of(lines, [](std::string_view each) { return !jinja::stripped(each).empty(); }))
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
  PRISM_CHECK(options.shots > 0 || options.shots_from.empty(), kEvaluation,
              "expected the number of shots with their file; found none; give --shots.");
  if (options.shots == 0) return items;
  PRISM_CHECK(task.kind == TaskKind::choice || task.kind == TaskKind::completion, kEvaluation,
              "expected --shots with a task that asks questions; found {}; leave out the option.", task.name);
  PRISM_CHECK(!options.shots_from.empty(), kEvaluation,
              "expected the file of the shots; found none; name one with --shots-from.");
  // One more, because a question is not among its own shots.
  const auto solved = items_of(task, options.shots_from, options.shots + 1);
  for (auto& item : items) {
    std::string shots;
    int64_t count = 0;
    for (const auto& each : solved) {
      if (count == options.shots || each.row == item.row) continue;
      shots += shot_text(task, each) + "\n\n";
      ++count;
    }
    PRISM_CHECK(count == options.shots, kEvaluation, "expected {} of shots in {}; found {}; lower --shots.",
                counted(options.shots, "row"), plain_line(options.shots_from), count);
    for (auto& query : item.queries) query.context = shots + query.context;
  }
  return items;
}

}  // namespace prism
