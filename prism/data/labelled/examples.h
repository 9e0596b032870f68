// Labelled texts: rows of CSV or JSONL files, of which one column is the label and others are the text.
//
//   ExampleSource source({"train.csv"}, {.label = "1", .text_fields = {"2", "3"}});
//   while (std::optional<Example> example = source.next()) use(example->label, example->texts);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/data/labelled/rows.h"
#include "prism/data/labelled/words.h"

namespace prism {

struct ExampleOptions {
  std::string label = {};                     ///< column of the label; empty: the texts have none
  std::vector<std::string> text_fields = {};  ///< columns of the text; empty: all but the label
  std::string format = "auto";                ///< as open_rows() takes it
  bool words = false;                         ///< texts in lower case, with punctuation apart (words.h)
};

/// The text with every written \n, a backslash and an n, replaced by a line end.
std::string with_line_ends(const std::string& text);

/// One labelled text.
struct Example {
  std::string label;               ///< empty if the options name no column
  std::vector<std::string> texts;  ///< the fields of the text; not all are blank
  std::string place;               ///< "train.csv, line 7"
  bool may_be_header = false;      ///< the first row of a CSV whose columns are numbers
};

/// The examples of several files, in their order.
class ExampleSource {
 public:
  /// Columns are names if the label, or without one the first text field, is a name: a member of JSON objects, or a
  /// column of a CSV whose first row holds names. They are numbers from 1 if it is a number, and the CSV then has no
  /// row of names. If the options name no text fields, the first row decides them for all rows; without a label, they
  /// must name some.
  /// @throws InputError for columns of both kinds, a column named twice, and a label that is also a text.
  ExampleSource(std::vector<std::string> files, ExampleOptions options);

  /// The next example; std::nullopt at the end. Blanks around a label are left out. In CSV, a written \n (backslash and
  /// n) becomes a line end.
  /// @throws InputError naming file and line: a missing column, a row without text or without a label; also as
  ///         RowReader::next().
  std::optional<Example> next();

  /// Bytes of the files on disk that have been read.
  int64_t consumed() const;
  /// The columns that make the text; empty before the first example if the options name none: all but the label.
  const std::vector<std::string>& text_fields() const { return text_fields_; }

 private:
  bool has_labels() const { return !options_.label.empty(); }
  void open_next();
  /// Finds the columns in a row. @return  true if the row only holds names.
  bool find_columns(const Row& row);
  size_t find_column(const Row& row, const std::string& column) const;
  /// The name of a column: of a JSON member, or as the row of names has it.
  const std::string& name_of(const std::pair<std::string, std::string>& field) const;
  Example example_of(Row& row) const;

  std::vector<std::string> files_;
  ExampleOptions options_;
  bool by_number_ = false;
  std::vector<std::string> text_fields_;
  WordText words_;
  size_t next_file_ = 0;
  int64_t consumed_before_ = 0;  ///< bytes of the files before the open one
  std::unique_ptr<RowReader> reader_;
  bool is_first_row_ = true;
  size_t label_at_ = 0;
  std::vector<size_t> texts_at_;
};

}  // namespace prism
