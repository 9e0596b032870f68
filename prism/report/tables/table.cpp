#include "prism/report/tables/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/report/draw/escape.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/draw/series.h"

namespace prism {
namespace {

constexpr size_t kShort = 28;  // texts of at most this many characters are not wrapped, whatever the page's width

/// Width in characters of " ± spread" in each column, so that values in a column stay aligned.
std::vector<size_t> spread_widths(const Table& table) {
  std::vector<size_t> widths(table.columns.size(), 0);
  for (const auto& row : table.rows) {
    PRISM_ASSERT(row.size() == table.columns.size(), "table", "{}: a row has {} cells, not {}.", table.caption,
                 row.size(), table.columns.size());
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i].spread));
  }
  return widths;
}

std::string cell_html(const TableCell& cell, const TableColumn& column, size_t spread_width, bool names_row) {
  std::string inner =
      column.numeric ? escape_html(minus_signs(cell.text)) : "<bdi>" + escape_html(cell.text) + "</bdi>";
  if (cell.strong) inner = "<strong>" + inner + "</strong>";
  if (spread_width > 0) {
    inner += fmt::format("<span class=\"spread\" style=\"min-width:{}ch\">{}</span>", spread_width + 3,
                         cell.spread.empty() ? "" : " ± " + escape_html(cell.spread));
  }
  if (cell.series >= 0) inner = series_key_svg(cell.series) + inner;
  const char* tag = names_row ? "th scope=\"row\"" : "td";
  const char* style = column.numeric ? " class=\"n\"" : display_width(cell.text) <= kShort ? " class=\"short\"" : "";
  return fmt::format("<{}{}>{}</{}>", tag, style, inner, names_row ? "th" : "td");
}

/// Columns of a terminal that a cell may fill.
constexpr size_t kWidestCell = 200;

/// "value ± spread", with the spread padded to its column's width.
std::string cell_text(const TableCell& cell, size_t spread_width) {
  std::string text = short_line(cell.text, kWidestCell);
  if (spread_width == 0) return text;
  if (cell.spread.empty()) return text + std::string(spread_width + 3, ' ');
  return text + " ± " + std::string(spread_width - display_width(cell.spread), ' ') + plain_line(cell.spread);
}

}  // namespace

std::string table_html(const Table& table) {
  const auto spreads = spread_widths(table);
  std::string html = fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">\n<table>\n",
                                 escape_html(table.caption));
  html += "<caption>" + escape_html(table.caption) + "</caption>\n<thead><tr>";
  for (const auto& column : table.columns) {
    html +=
        fmt::format("<th scope=\"col\"{}>{}</th>", column.numeric ? " class=\"n\"" : "", escape_html(column.header));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) html += cell_html(row[i], table.columns[i], spreads[i], i == 0);
    html += "</tr>\n";
  }
  html += "</tbody>\n</table>\n</div>\n";
  for (const auto& note : table.notes) html += "<p class=\"note\">" + escape_html(note) + "</p>\n";
  return html;
}

std::string table_markdown(const Table& table) {
  const auto spreads = spread_widths(table);
  std::string text = "**" + escape_markdown(table.caption) + "**\n\n|", rule = "|";
  for (const auto& column : table.columns) {
    text += " " + escape_markdown(column.header) + " |";
    rule += column.numeric ? "---:|" : "---|";
  }
  text += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    text += "|";
    for (const auto& cell : row) {
      std::string inner = escape_markdown(cell.text);
      if (cell.strong) inner = "**" + inner + "**";
      if (!cell.spread.empty()) inner += " ± " + escape_markdown(cell.spread);
      text += " " + inner + " |";
    }
    text += "\n";
  }
  for (const auto& note : table.notes) text += "\n" + escape_markdown(note) + "\n";
  return text;
}

std::string table_text(const Table& table) {
  const auto spreads = spread_widths(table);
  std::vector<std::vector<std::string>> lines(1);
  for (const auto& column : table.columns) lines[0].push_back(plain_line(column.header));
  for (const auto& row : table.rows) {
    auto& line = lines.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) line.push_back((row[i].strong ? "*" : "") + cell_text(row[i], spreads[i]));
  }
  std::vector<size_t> widths(table.columns.size(), 0);
  for (const auto& line : lines) {
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], display_width(line[i]));
  }
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - display_width(line[i]), ' ');
      row += (i > 0 ? "  " : "") + (table.columns[i].numeric ? padding + line[i] : line[i] + padding);
    }
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  for (const auto& note : table.notes) text += plain_line(note) + "\n";
  return text;
}

std::string tables_text(const std::vector<Table>& tables) {
  std::string text;
  for (const auto& table : tables) {
    if (!text.empty()) text += "\n";
    if (tables.size() > 1) text += plain_line(table.caption) + "\n";
    text += table_text(table);
  }
  return text;
}

}  // namespace prism
