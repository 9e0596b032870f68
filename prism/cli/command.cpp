#include "prism/cli/command.h"

#include <algorithm>

#include "prism/core/error.h"

namespace prism {

void add_threads_option(CLI::App& app, int& threads, const std::string& what) {
  app.add_option("--threads", threads, what + "; 0: as many as this process may use")
      ->type_name("N")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
}

bool parse(CLI::App& app, const Arguments& arguments) {
  const std::string footer = app.get_footer();
  app.footer(footer + (footer.empty() ? "" : "\n") + "Exit status: 0 done, 1 failed, 2 wrong input.");
  Arguments reversed(arguments.rbegin(), arguments.rend());  // CLI11 pops from the back
  try {
    app.parse(std::move(reversed));
    return true;
  } catch (const CLI::CallForHelp&) {
    // Subcommands answer --help for themselves.
    fmt::print("{}", app.help());
    return false;
  } catch (const CLI::ParseError& error) {
    throw InputError(app.get_name(), fmt::format("{}; see {} --help.", error.what(), app.get_name()));
  }
}

}  // namespace prism
