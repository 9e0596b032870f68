// Parts of the report's page: sections, figures with numbers, keys and tables that unfold.
//
//   FigureWriter writer("gnuplot", &problems);
//   const std::string loss = writer.figure(plot, "Training loss", "Smoothed.", /*nothing=*/"No loss.");
//   page += section_html(kTraining, "Loss", figures_html(loss));
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "prism/report/compare/compare.h"
#include "prism/report/draw/plot.h"
#include "prism/report/tables/table.h"

namespace prism {

/// The tabs. The script shows the sections of one tab at a time; sections without a tab are always visible.
inline constexpr const char *kNoTab = "", *kTraining = "Training", *kComparison = "Comparison",
                            *kDiagnostics = "Diagnostics", *kAttention = "Attention", *kSparsity = "Sparsity";

/// Empty without content. @param tab  one of the tabs. @param content  HTML.
std::string section_html(const char* tab, const std::string& heading, const std::string& content);

/// A number and its deviation, "4.4012 ± 0.0031", stay on one line.
/// @param text  any text. @param style  a class of the style sheet, or empty.
std::string paragraph_html(const std::string& text, const char* style = "");

/// @param content  HTML that unfolds from `summary`, any text.
std::string details_html(const std::string& content, const std::string& summary);

/// A table that unfolds from its summary; empty for a table without rows.
std::string table_details(const Table& table, const std::string& summary);

/// A group of figures, side by side where they fit. @param content  HTML.
std::string figures_html(const std::string& content);

/// The group's line and marker, and its name.
std::string labelled_key(const Comparison& comparison, size_t group);

/// The names with their lines and markers. The script makes them switches.
std::string legend_html(const Comparison& comparison);

/// Numbered figures with captions. A plot without data or without gnuplot is replaced by a sentence.
class FigureWriter {
 public:
  /// @param gnuplot  see draw_plot(). @param problems  gets the messages of plots that cannot be drawn.
  FigureWriter(std::string gnuplot, std::vector<std::string>* problems)
      : gnuplot_(std::move(gnuplot)), problems_(problems) {}

  /// @param nothing  the sentence for a plot without data.
  std::string figure(const Plot& plot, const std::string& title, const std::string& caption,
                     const std::string& nothing);

  const std::vector<Plot>& drawn() const { return drawn_; }

 private:
  std::string drawing(const Plot& plot, const std::string& nothing);

  std::string gnuplot_;
  std::vector<std::string>* problems_;
  std::vector<Plot> drawn_;
  int number_ = 0;
};

}  // namespace prism
