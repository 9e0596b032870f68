// One table, three renderings: HTML for the page, Markdown for a document, aligned text for a terminal.
//
//   Table table{"Results", {{"run"}, {"val loss", true}}, {}, {}};
//   table.rows.push_back({{"uniform"}, {"4.4012", "0.0031"}});
//   std::cout << table_text(table);
#pragma once

#include <string>
#include <vector>

namespace prism {

struct TableColumn {
  std::string header;
  bool numeric = false;  ///< aligned right, with digits of equal width
};

struct TableCell {
  std::string text;
  std::string spread = {};  ///< printed after ±; empty if there is none
  bool strong = false;      ///< marked as the best of its column
  int series = -1;          ///< shown with the line and marker of this series; -1 for none
};

/// The first column names the row. Texts are stored raw; the output functions escape them.
struct Table {
  std::string caption;
  std::vector<TableColumn> columns;
  std::vector<std::vector<TableCell>> rows;
  std::vector<std::string> notes;
};

/// A `<table>` in a scrolling `<div>`, headers with scope, notes below.
std::string table_html(const Table& table);
/// A pipe table; caption above, notes below.
std::string table_markdown(const Table& table);
/// Columns aligned by spaces, a star before the best value, no caption, notes below.
std::string table_text(const Table& table);
/// The tables as text, with blank lines between them and, if there are several, captions above them.
std::string tables_text(const std::vector<Table>& tables);

}  // namespace prism
