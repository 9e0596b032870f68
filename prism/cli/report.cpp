// prism report: compares runs on one page, in Markdown, and in a short table on standard output.
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
#include "prism/core/stop.h"
#include "prism/records/run_event.h"
#include "prism/report/compare/compare.h"
#include "prism/report/page/markdown.h"
#include "prism/report/page/page.h"
#include "prism/report/tables/summary.h"
#include "prism/serving/page_server.h"
#include "prism/training/recipe.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Drops folders that are named twice, as in `report runs/base runs/*`, which puts one run first.
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

/// Rejects, before any work, targets that cannot be meant. Writing renames a new file over the target, so it would
/// replace a device or a pipe instead of writing to it.
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
  PRISM_CHECK(name != kRunRecordsName && name != kRunRecipeName, "report",
              "{}: expected a file to write; found {}, which belongs to a run; choose another name.", option, target);
}

void check_not_written(const char* option, const std::vector<std::string>& files,
                       const std::vector<std::string>& targets) {
  for (const auto& file : files)
    for (const auto& target : targets) {
      std::error_code unreachable;
      PRISM_CHECK(target.empty() || !fs::equivalent(target, file, unreachable), "report",
                  "{}: expected a file that this command does not write; found {}, which is an output; name another.",
                  option, file);
    }
}

/// A file that is written at the end. A folder made for it is removed again if it is not written.
struct Target {
  explicit Target(const std::string& name) : folder(fs::absolute(name).parent_path()), file(name) {}
  void commit(const std::string& text) {
    file.write(text);
    file.commit();
  }

  MadeFolder folder;
  AtomicFile file;
};

/// The tables printed to standard output.
std::vector<Table> tables_of(const std::optional<Comparison>& comparison, const ReportOptions& options) {
  std::vector<Table> tables = evaluation_tables(options.evaluation);
  for (auto& table : prefill_tables(options.prefill)) tables.push_back(std::move(table));
  for (auto& table : analysis_tables(options.analysis)) tables.push_back(std::move(table));
  if (comparison) tables.insert(tables.begin(), results_table(*comparison));
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

/// The folder as links in the document name it: relative to the document, unless that goes to standard output.
std::string seen_from(const std::string& document, const std::string& folder) {
  if (document.empty() || document == "-") return folder;
  return fs::absolute(folder).lexically_relative(fs::absolute(document).parent_path()).generic_string();
}

struct ReportWords {
  std::vector<std::string> names, prefill, analysis, evaluation;
  std::string out = "report.html", markdown, figures, baseline;
  ReportOptions options;
  bool watch = false;
  int port = 8080;
};

void add_options(CLI::App& app, ReportWords& words) {
  app.add_option("RUN", words.names, "run folders made by prism train; the first is the baseline");
  auto* out = app.add_option("--out", words.out, "page to write")->type_name("FILE.html")->capture_default_str();
  auto* markdown =
      app.add_option("--markdown", words.markdown, "also write the report as Markdown; -: to standard output")
          ->type_name("FILE");
  auto* figures = app.add_option("--figures", words.figures,
                                 "also write each figure as an SVG file into this folder; the Markdown then shows them")
                      ->type_name("FOLDER");
  app.add_option("--baseline", words.baseline, "name of the run that the others are compared with")->type_name("NAME");
  app.add_option("--prefill", words.prefill,
                 "JSON lines of prism bench prefill or prism eval --prefill: add tables of what sparse prefill costs "
                 "and loses; needs no RUN. A line of prism eval may also have \"answers\":[[D,1],[D,0],...]: for each "
                 "question about its texts, the distance D to its fact in tokens, and 1 if the answer is right, else 0")
      ->type_name("FILE");
  app.add_option("--analysis", words.analysis,
                 fmt::format("JSON lines of prism analyse ({}): add their tables and pictures; needs no RUN",
                             fmt::join(analysis_names(), ", ")))
      ->type_name("FILE");
  app.add_option("--evaluation", words.evaluation,
                 "folders that prism eval --task ... --out wrote: add tables of models by tasks; needs no RUN")
      ->type_name("FOLDER");
  app.add_option("--title", words.options.title, "title of the page")->type_name("TEXT");
  auto* watch =
      app.add_flag("--watch", words.watch,
                   "write nothing; serve the page to a browser on this machine and update it while the runs train, "
                   "until Ctrl-C");
  app.add_option("--port", words.port, "port of 127.0.0.1 on which --watch serves the page; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->needs(watch)
      ->capture_default_str();
  for (auto* other : {out, markdown, figures}) other->excludes(watch);
}

void check_words(const CLI::App& app, const ReportWords& words) {
  check_target("--out", words.out);
  if (app.count("--markdown") > 0 && words.markdown != "-") check_target("--markdown", words.markdown);
  PRISM_CHECK(fs::path(words.out).lexically_normal() != fs::path(words.markdown).lexically_normal(), "report",
              "--markdown: expected another file than --out; found {} for both; name two.", words.out);
  PRISM_CHECK(!words.names.empty() || !words.prefill.empty() || !words.analysis.empty() || !words.evaluation.empty(),
              "report",
              "expected RUN, --prefill, --analysis or --evaluation; found none of them; name what to report on.");
  PRISM_CHECK(!words.names.empty() || words.baseline.empty(), "report",
              "--baseline: expected runs to compare with it; found none; name them.");
  PRISM_CHECK(!words.names.empty() || !words.watch, "report",
              "--watch: expected runs to watch; found none; name them.");
  check_not_written("--prefill", words.prefill, {words.out, words.markdown});
  check_not_written("--analysis", words.analysis, {words.out, words.markdown});
}

/// Runs that are read again when their records change.
class RecordedRuns {
 public:
  explicit RecordedRuns(const std::vector<fs::path>& folders) {
    for (const auto& folder : folders) runs_.push_back({folder, {}, {}});
    update();
  }

  /// Reads runs whose records have changed. Returns true if any run has changed since the last comparison.
  bool update() {
    for (auto& [folder, state, run] : runs_) {
      std::error_code gone;
      const fs::path file = folder / kRunRecordsName;
      const State now(fs::file_size(file, gone), fs::last_write_time(file, gone));
      if (run && now == state) continue;
      run = read_recorded_run(folder);
      state = now;
      changed_ = true;
    }
    return changed_;
  }
  Comparison compare(const std::string& baseline) {
    changed_ = false;
    std::vector<Run> runs;
    for (const auto& recorded : runs_) runs.push_back(*recorded.run);
    return compare_runs(std::move(runs), baseline);
  }

 private:
  using State = std::pair<uintmax_t, fs::file_time_type>;
  struct Recorded {
    fs::path folder;
    State state;
    std::optional<Run> run;
  };
  std::vector<Recorded> runs_;
  bool changed_ = false;
};

bool goes_on(const Comparison& comparison) {
  for (const auto& group : comparison.groups)
    if (!std::all_of(group.runs.begin(), group.runs.end(), [](const Run& run) { return run.finished || run.diverged; }))
      return true;
  return false;
}

/// Serves the page, and renders it again when a run's records change.
void watch_runs(const ReportWords& words) {
  constexpr int kRefreshSeconds = 5;
  RecordedRuns runs(distinct_folders(words.names));
  runs.compare(words.baseline);  // reports faulty runs here, not in the browser
  PageServer server(words.port);
  catch_stop_signals();
  fmt::print("http://127.0.0.1:{}\n", server.port());
  std::fflush(stdout);
  ServedPage page;
  const auto render = [&] {
    if (!runs.update() && !page.html.empty()) return page;
    page.html.clear();
    const Comparison comparison = runs.compare(words.baseline);
    std::vector<std::string> problems;
    page = {report_html(comparison, words.options, &problems), goes_on(comparison) ? kRefreshSeconds : 0};
    return page;
  };
  server.run(render, [] { return stop_signal() != 0; });
}

/// Writes the page, and the Markdown and figures that were asked for.
void write_report(ReportWords& words) {
  auto& options = words.options;
  const auto comparison = words.names.empty()
                              ? std::nullopt
                              : std::optional(RecordedRuns(distinct_folders(words.names)).compare(words.baseline));
  std::vector<FigureFile> figures;
  if (!words.figures.empty()) {
    figures = comparison ? report_figures(*comparison, options) : records_figures(options);
    options.figures = seen_from(words.markdown, words.figures);
  }
  std::vector<std::string> problems;
  const std::string page = comparison ? report_html(*comparison, options, &problems) : records_html(options, &problems);
  const std::string document = words.markdown.empty() ? ""
                               : comparison           ? report_markdown(*comparison, options)
                                                      : records_markdown(options);
  // All targets are opened before anything is written.
  Target page_file(words.out);
  std::optional<Target> document_file;
  if (!words.markdown.empty() && words.markdown != "-") document_file.emplace(words.markdown);
  if (!words.figures.empty()) write_figures(figures, words.figures);
  if (document_file) document_file->commit(document);
  page_file.commit(page);
  if (words.markdown == "-") {
    fmt::print("{}", document);
    tell("{}\n", words.out);
  } else {
    const auto text = tables_text(tables_of(comparison, options));
    fmt::print("{}{}{}\n", text, text.empty() ? "" : "\n", words.out);
  }
  if (comparison)
    for (const auto& remark : comparison->remarks) tell("{}\n", remark);
  for (const auto& problem : problems) tell("{}\n", problem);
}

}  // namespace

int run_report(const Arguments& arguments) {
  ReportWords words;
  CLI::App app(
      "Write a page that compares runs (loss curves, tables, head schedules, samples), or serve it while they train.",
      "prism report");
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  check_words(app, words);
  words.options.prefill = read_prefill_records({words.prefill.begin(), words.prefill.end()});
  words.options.analysis = read_analysis_records({words.analysis.begin(), words.analysis.end()});
  words.options.evaluation = read_evaluations(distinct_folders(words.evaluation));
  words.watch ? watch_runs(words) : write_report(words);
  return 0;
}

}  // namespace prism
