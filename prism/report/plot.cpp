#include "prism/report/plot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "prism/core/error.h"
#include "prism/report/escape.h"
#include "prism/report/series.h"

extern char** environ;

namespace prism {
namespace {

// Colours that stand for roles until inline_svg() puts the page's variables in their place: the red part says "role".
constexpr int kRole = 1, kRoleColour = 1, kSeriesColour = 2, kFaintColour = 3;
constexpr std::array kRoles = {"ink", "grid", "zero"};
constexpr size_t kMostPoints = 600;  // a curve on a 480 pixel wide plot shows no more

std::string role_colour(size_t role) {
  return fmt::format("#{:02x}{:02x}{:02x}", kRole, kRoleColour, role);
}

std::string series_colour(const PlotSeries& series) {
  return fmt::format("#{:02x}{:02x}{:02x}", kRole, series.style == PlotStyle::kFaint ? kFaintColour : kSeriesColour,
                     series_style(series.series).colour);
}

/// Tokens in a unit that keeps the axis' numbers short.
struct TokenUnit {
  double tokens;
  const char* label;
};

TokenUnit token_unit(int64_t most) {
  if (most >= 2'000'000'000) return {1e9, "trained tokens (billions)"};
  if (most >= 2'000'000) return {1e6, "trained tokens (millions)"};
  if (most >= 2'000) return {1e3, "trained tokens (thousands)"};
  return {1, "trained tokens"};
}

int64_t most_tokens(const Plot& plot) {
  int64_t most = 0;
  for (const auto& series : plot.series) {
    for (const auto& point : series.points) most = std::max(most, point.tokens);
  }
  return std::max<int64_t>(most, 1);
}

/// Step and format of an axis' numbers: 1, 2 or 5 times a power of ten, four to nine of them, decimals alike.
std::string tick_commands(char axis, double low, double high) {
  const double rough = (high - low) / 6;
  if (!std::isnormal(rough)) return {};
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double factor = rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10;
  const double step = factor * power;
  const int decimals = std::clamp(-static_cast<int>(std::floor(std::log10(step) + 1e-9)), 0, 12);
  return fmt::format("set {0}tics {1:.7g}\nset format {0} \"%.{2}f\"\n", axis, step, decimals);
}

std::string data_block(size_t index, const PlotSeries& series, double unit) {
  std::string block = fmt::format("$data{} << EOD\n", index);
  const size_t stride = std::max<size_t>(1, (series.points.size() + kMostPoints - 1) / kMostPoints);
  for (size_t i = 0; i < series.points.size(); ++i) {
    if (i % stride != 0 && i + 1 != series.points.size()) continue;
    const auto& point = series.points[i];
    const double x = static_cast<double>(point.tokens) / unit;
    if (series.style == PlotStyle::kBand) {
      block += fmt::format("{:.7g} {:.7g} {:.7g}\n", x, point.low, point.high);
    } else {
      block += fmt::format("{:.7g} {:.7g}\n", x, point.value);
    }
  }
  return block + "EOD\n";
}

std::string plot_clause(size_t index, const PlotSeries& series) {
  const SeriesStyle style = series_style(series.series);
  const std::string colour = series_colour(series);
  const std::string dashes = *style.dashes ? fmt::format(" dt ({})", style.dashes) : "";
  switch (series.style) {
    case PlotStyle::kFaint:
      return fmt::format("$data{} using 1:2 with lines lw 0.8 lc rgb \"{}\"", index, colour);
    case PlotStyle::kLine:
      return fmt::format("$data{} using 1:2 with lines lw 1.8{} lc rgb \"{}\"", index, dashes, colour);
    case PlotStyle::kPoints:
      return fmt::format(
          "$data{0} using 1:2 with lines lw 1.2{1} lc rgb \"{2}\", $data{0} using 1:2 with points pt {3} "
          "ps 0.75 lc rgb \"{2}\"",
          index, dashes, colour, style.gnuplot_point);
    case PlotStyle::kBand:
      return fmt::format("$data{} using 1:2:3 with filledcurves fc rgb \"{}\" fs transparent solid 0.18 noborder",
                         index, colour);
  }
  throw InternalError("plot", "a series has no style.");
}

// ---- the drawn SVG ----

std::string_view cut_between(std::string_view text, std::string_view from, std::string_view to, size_t* begin) {
  *begin = text.find(from);
  if (*begin == std::string_view::npos) return {};
  const size_t end = text.find(to, *begin);
  return text.substr(*begin, end == std::string_view::npos ? end : end + to.size() - *begin);
}

/// Removes every stretch from `from` to `to`, both included.
void remove_all(std::string& text, std::string_view from, std::string_view to) {
  size_t begin = 0;
  for (auto cut = cut_between(text, from, to, &begin); !cut.empty(); cut = cut_between(text, from, to, &begin)) {
    text.erase(begin, cut.size());
  }
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

/// The value, as a style, of a colour of role_colour() or series_colour(); empty for any other.
std::string colour_style(std::string_view property, int red, int green, int blue) {
  if (red != kRole || blue < 0) return {};
  if (green == kRoleColour && blue < static_cast<int>(kRoles.size())) {
    return fmt::format("{}:var(--plot-{})", property, kRoles[static_cast<size_t>(blue)]);
  }
  if (blue >= kSeriesColours || (green != kSeriesColour && green != kFaintColour)) return {};
  return fmt::format("{}:var(--series-{}){}", property, blue, green == kFaintColour ? ";opacity:.4" : "");
}

/// stroke='rgb(1, 2, 0)' -> style="stroke:var(--series-0)": attributes take no variables everywhere, styles do.
std::string colours_by_variable(std::string_view svg) {
  std::string result;
  size_t done = 0;
  for (size_t at = svg.find("rgb("); at != std::string_view::npos; at = svg.find("rgb(", at + 1)) {
    int red = -1, green = -1, blue = -1;
    const std::string numbers(svg.substr(at, 24));
    const size_t equals = svg.rfind('=', at), close = svg.find_first_of("'\"", at);
    if (std::sscanf(numbers.c_str(), "rgb( %d , %d , %d )", &red, &green, &blue) != 3) continue;
    if (equals == std::string_view::npos || close == std::string_view::npos) continue;
    const size_t name_end = svg.find_last_not_of(' ', equals - 1) + 1,
                 name = svg.find_last_of(" \t\n", name_end - 1) + 1;
    const std::string style = colour_style(svg.substr(name, name_end - name), red, green, blue);
    if (style.empty()) continue;
    result += svg.substr(done, name - done);
    result += fmt::format("style=\"{}\"", style);
    done = close + 1;
  }
  return result + std::string(svg.substr(done));
}

// ---- the child process ----

/// A file in memory: the child's input or output, of any size, without a pipe that could fill up.
class MemoryFile {
 public:
  explicit MemoryFile(const char* name) : descriptor_(::memfd_create(name, MFD_CLOEXEC)) {
    if (descriptor_ < 0) fail();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }

  void fill(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::write(descriptor_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      text.remove_prefix(static_cast<size_t>(count));
    }
    if (::lseek(descriptor_, 0, SEEK_SET) != 0) fail();
  }

  std::string content() const {
    std::string text;
    char buffer[1 << 14];
    for (;;) {
      const ssize_t count = ::pread(descriptor_, buffer, sizeof buffer, static_cast<off_t>(text.size()));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail();
      if (count == 0) return text;
      text.append(buffer, static_cast<size_t>(count));
    }
  }

 private:
  [[noreturn]] static void fail() {
    throw FailedError("plot", fmt::format("expected memory for gnuplot's data; found: {}; free some and run again.",
                                          std::strerror(errno)));
  }
  int descriptor_;
};

/// Runs the program with the three streams, waits. @return its exit status, 128 + signal, or -errno if it did not
/// start.
int run_program(const std::string& program, const MemoryFile& input, const MemoryFile& output,
                const MemoryFile& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.descriptor(), 0);
  posix_spawn_file_actions_adddup2(&actions, output.descriptor(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors.descriptor(), 2);
  // -d: the user's own start-up files must not change the page.
  std::string name = program, defaults = "-d";
  char* words[] = {name.data(), defaults.data(), nullptr};
  pid_t child = 0;
  const int code = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return -code;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return -errno;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string gnuplot_script(const Plot& plot) {
  const int64_t most = most_tokens(plot);
  const TokenUnit unit = token_unit(most);
  const std::string ink = role_colour(0), grid = role_colour(1), zero = role_colour(2);
  std::string script =
      "set terminal svg size 480,320 dynamic noenhanced font \",13\"\nset encoding utf8\nset minussign\nset key off\n";
  script += fmt::format("set border 1 lc rgb \"{}\"\n", ink);
  script += fmt::format("set tics nomirror out scale 0.4 textcolor rgb \"{}\"\nset ytics scale 0\n", ink);
  script += fmt::format("set grid ytics lt 1 lw 0.7 lc rgb \"{}\"\n", grid);
  script += fmt::format("set xlabel \"{}\" textcolor rgb \"{}\"\n", unit.label, ink);
  script += fmt::format("set ylabel \"{}\" textcolor rgb \"{}\"\n", plot.y_label, ink);
  const double right = static_cast<double>(most) / unit.tokens;
  script += fmt::format("set lmargin 8.5\nset rmargin 2\nset tmargin 0.8\nset xrange [0:{:.7g}]\n", right);
  script += tick_commands('x', 0, right);
  if (plot.y_range) {
    const auto [low, high] = *plot.y_range;
    script += fmt::format("set yrange [{:.7g}:{:.7g}]\n", low, high) + tick_commands('y', low, high);
  }
  if (plot.zero_line)
    script += fmt::format("set arrow from graph 0, first 0 to graph 1, first 0 nohead lw 1 lc rgb \"{}\"\n", zero);
  for (size_t i = 0; i < plot.series.size(); ++i) script += data_block(i, plot.series[i], unit.tokens);
  for (size_t i = 0; i < plot.series.size(); ++i)
    script += (i == 0 ? "plot " : ", \\\n     ") + plot_clause(i, plot.series[i]);
  return script + "\n";
}

std::string inline_svg(std::string_view svg, const Plot& plot) {
  const size_t open = svg.find("<svg"), start = open == std::string_view::npos ? open : svg.find('>', open);
  const size_t end = svg.rfind("</svg>");
  PRISM_ASSERT(start != std::string_view::npos && end != std::string_view::npos && start < end, "plot",
               "gnuplot wrote no SVG for {}.", plot.id);
  std::string body(svg.substr(start + 1, end - start - 1));
  remove_all(body, "<title>", "</title>");
  remove_all(body, "<desc>", "</desc>");
  remove_all(body, "<filter", "</filter>");
  for (const char* attribute : {" color=\"black\"", " color=\"#FFFFFF\"", " font-family=\"Arial\"",
                                " stroke-linecap=\"butt\"", " stroke-linejoin=\"miter\"", " class=\"gridline\""}) {
    replace_all(body, attribute, "");
  }
  replace_all(body, "stroke=\"black\"", "stroke=\"currentColor\"");
  replace_all(body, "xlink:href", "href");
  // Several plots share a page, so their ids must differ.
  replace_all(body, "gpPt", plot.id + "-point");
  replace_all(body, "gpDot", plot.id + "-dot");
  replace_all(body, "gnuplot_", plot.id + "-");
  body = colours_by_variable(body);
  return fmt::format("<svg class=\"plot\" viewBox=\"0 0 480 320\" role=\"img\" aria-label=\"{}\">{}</svg>\n",
                     escape_html(plot.description), body);
}

std::string draw_plot(const Plot& plot, const std::string& gnuplot) {
  MemoryFile input("plot-script"), output("plot-svg"), errors("plot-errors");
  input.fill(gnuplot_script(plot));
  const int status = run_program(gnuplot, input, output, errors);
  if (status < 0) {
    throw FailedError("plot", fmt::format("expected gnuplot to draw the plots; found that \"{}\" does not start ({}); "
                                          "install it (Debian: apt-get install gnuplot-nox) and run again.",
                                          gnuplot, std::strerror(-status)));
  }
  const std::string svg = output.content();
  if (status != 0 || svg.find("</svg>") == std::string::npos) {
    throw FailedError("plot",
                      fmt::format("expected {} to draw the plot \"{}\"; found exit status {} and the words \"{}\"; "
                                  "check that it has the svg terminal.",
                                  gnuplot, plot.id, status, plain_line(errors.content().substr(0, 300))));
  }
  return inline_svg(svg, plot);
}

}  // namespace prism
