#include "prism/report/page/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "prism/core/error.h"
#include "prism/report/draw/escape.h"
#include "prism/report/draw/series.h"

namespace prism {

std::string section_html(const char* tab, const std::string& heading, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section{}>\n<h2>{}</h2>\n{}</section>\n", *tab ? fmt::format(" data-tab=\"{}\"", tab) : "",
                     heading, content);
}

std::string paragraph_html(const std::string& text, const char* style) {
  constexpr std::string_view kBreakable = " ± ";
  std::string content = escape_html(text);
  for (size_t at = 0; (at = content.find(kBreakable, at)) != std::string::npos;)
    content.replace(at, kBreakable.size(), "&nbsp;±&nbsp;");
  return fmt::format("<p{}>{}</p>\n", *style ? fmt::format(" class=\"{}\"", style) : "", content);
}

std::string details_html(const std::string& content, const std::string& summary) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape_html(summary), content);
}

std::string table_details(const Table& table, const std::string& summary) {
  return table.rows.empty() ? "" : details_html(table_html(table), summary);
}

std::string figures_html(const std::string& content) {
  return "<div class=\"figures\">\n" + content + "</div>\n";
}

std::string labelled_key(const Comparison& comparison, size_t group) {
  return series_key_svg(static_cast<int>(group)) + "<bdi>" + escape_html(comparison.groups[group].label) + "</bdi>";
}

std::string legend_html(const Comparison& comparison) {
  std::string list = "<ul class=\"legend\">\n";
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    list += fmt::format("<li data-series=\"{}\">{}</li>\n", i, labelled_key(comparison, i));
  }
  return list + "</ul>\n";
}

std::string FigureWriter::figure(const Plot& plot, const std::string& title, const std::string& caption,
                                 const std::string& nothing) {
  return fmt::format("<figure{}>\n{}<figcaption><b>Figure {}. {}</b> {}</figcaption>\n</figure>\n",
                     plot.series.empty() ? " class=\"empty\"" : "", drawing(plot, nothing), ++number_,
                     escape_html(title), escape_html(caption));
}

std::string FigureWriter::drawing(const Plot& plot, const std::string& nothing) {
  if (plot.series.empty()) return paragraph_html(nothing, "missing");
  try {
    std::string svg = draw_plot(plot, gnuplot_);
    drawn_.push_back(plot);
    return svg;
  } catch (const FailedError& error) {
    if (std::find(problems_->begin(), problems_->end(), error.what()) == problems_->end()) {
      problems_->emplace_back(error.what());
    }
    return paragraph_html(error.what(), "missing");
  }
}

}  // namespace prism
