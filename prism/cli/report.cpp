// prism report: runs side by side as one page, as Markdown, and as a short table on standard output.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "prism/cli/command.h"
#include "prism/cli/recorded_run.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/report/compare.h"
#include "prism/report/page.h"
#include "prism/report/summary.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// The same folder named twice (`report runs/base runs/*`, to put one first) is one run.
std::vector<fs::path> distinct_folders(const std::vector<std::string>& names) {
  std::vector<fs::path> folders, known;
  for (const auto& name : names) {
    std::error_code code;
    const fs::path real = fs::weakly_canonical(name, code);
    if (!code && std::find(known.begin(), known.end(), real) != known.end()) continue;
    known.push_back(real);
    folders.emplace_back(name);
  }
  return folders;
}

/// Before any work: a target that cannot be meant. Writing renames over what is there, so a device or a pipe would be
/// replaced by a file, not written to.
void check_target(const char* option, const std::string& target) {
  std::error_code code;
  const fs::file_status status = fs::status(target, code);
  PRISM_CHECK(!target.empty() && !fs::is_directory(status), "report",
              "{}: expected the name of a file to write; found {}; add a file name.", option,
              target.empty() ? "nothing" : fmt::format("the folder {}", target));
  PRISM_CHECK(!fs::exists(status) || fs::is_regular_file(status), "report",
              "{}: expected an ordinary file or a new name; found {}, which is a device or a pipe; name a file.",
              option, target);
  const std::string name = fs::path(target).filename().string();
  PRISM_CHECK(name != "records.jsonl" && name != "recipe.json", "report",
              "{}: expected a file to write; found {}, which belongs to a run; choose another name.", option, target);
}

void write_target(const std::string& target, const std::string& text) {
  const fs::path folder = fs::path(target).parent_path();
  if (!folder.empty()) make_folder(folder);
  write_file(target, text);
}

void write_figures(const std::vector<FigureFile>& files, const fs::path& folder) {
  make_folder(folder);
  for (const auto& [name, svg] : files) write_file(folder / name, svg);
}

/// What a terminal shows.
std::vector<Table> tables_of(const std::optional<Comparison>& comparison, const PrefillRecords& prefill) {
  std::vector<Table> tables = {prefill_speed_table(prefill), prefill_loss_table(prefill)};
  if (comparison) tables.insert(tables.begin(), results_table(*comparison));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

/// The folder as a link in the document names it; on standard output, a document has no place of its own.
std::string seen_from(const std::string& document, const std::string& folder) {
  if (document.empty() || document == "-") return folder;
  return fs::absolute(folder).lexically_relative(fs::absolute(document).parent_path()).generic_string();
}

}  // namespace

int run_report(const Arguments& arguments) {
  std::vector<std::string> names, prefill;
  std::string out = "report.html", markdown, figures, baseline;
  ReportOptions options;
  CLI::App app("one page that compares runs: loss curves, tables, head schedules, samples", "prism report");
  app.add_option("RUN", names, "folders that prism train wrote to; the first is the baseline");
  app.add_option("--out", out, "the page to write")->type_name("FILE.html")->capture_default_str();
  app.add_option("--markdown", markdown, "also write the report as Markdown; -: to standard output")->type_name("FILE");
  app.add_option("--figures", figures, "also write each figure as an SVG file, which the Markdown then shows")
      ->type_name("FOLDER");
  app.add_option("--baseline", baseline, "name of the run that the others are measured against")->type_name("NAME");
  app.add_option(
         "--prefill", prefill,
         "JSON lines of prism bench prefill and prism eval --prefill: tables of what sparse prompts cost and lose, "
         "beside runs or alone")
      ->type_name("FILE");
  app.add_option("--title", options.title, "the page's title")->type_name("TEXT");
  if (!parse(app, arguments)) return 0;
  check_target("--out", out);
  if (app.count("--markdown") > 0 && markdown != "-") check_target("--markdown", markdown);
  PRISM_CHECK(fs::path(out).lexically_normal() != fs::path(markdown).lexically_normal(), "report",
              "--markdown: expected another file than --out; found {} for both; name two.", out);

  PRISM_CHECK(!names.empty() || !prefill.empty(), "report",
              "expected RUN or --prefill; found neither; name what to report on.");
  PRISM_CHECK(!names.empty() || baseline.empty(), "report",
              "--baseline: expected runs to measure against it; found none; name them.");
  for (const auto& file : prefill)
    for (const auto& target : {out, markdown}) {
      std::error_code unreachable;
      PRISM_CHECK(
          target.empty() || !fs::equivalent(target, file, unreachable), "report",
          "--prefill: expected files that are not written; found {}, which is also to be written; name another.", file);
    }
  options.prefill = read_prefill_records({prefill.begin(), prefill.end()});
  std::optional<Comparison> comparison;
  if (!names.empty()) {
    std::vector<Run> runs;
    for (const auto& folder : distinct_folders(names)) runs.push_back(read_recorded_run(folder));
    comparison = compare_runs(std::move(runs), baseline);
  }
  if (!figures.empty()) {
    write_figures(comparison ? report_figures(*comparison, options) : prefill_figures(options), figures);
    options.figures = seen_from(markdown, figures);
  }
  std::vector<std::string> problems;
  write_target(out, comparison ? report_html(*comparison, options, &problems) : prefill_html(options, &problems));
  const auto document = [&] { return comparison ? report_markdown(*comparison, options) : prefill_markdown(options); };
  if (markdown == "-") {
    fmt::print("{}", document());
    say("{}\n", out);
  } else {
    if (!markdown.empty()) write_target(markdown, document());
    for (const Table& table : tables_of(comparison, options.prefill)) fmt::print("{}", table_text(table));
    fmt::print("\n{}\n", out);
  }
  if (comparison)
    for (const auto& remark : comparison->remarks) say("{}\n", remark);
  for (const auto& problem : problems) say("{}\n", problem);
  return 0;
}

}  // namespace prism
