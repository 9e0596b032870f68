#include "prism/cli/command.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/text/names.h"

namespace prism {
namespace {

/// Rejects empty values. They come from unset shell variables, and would otherwise count as absent.
void check_values(const CLI::App& app) {
  constexpr std::string_view kMayBeEmpty[] = {"--separator", "PROMPT"};
  for (const auto* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->get_group() == kDescribedInFooter ||
        std::find(std::begin(kMayBeEmpty), std::end(kMayBeEmpty), name) != std::end(kMayBeEmpty))
      continue;
    const auto results = option->results();
    PRISM_CHECK(std::find(results.begin(), results.end(), "") == results.end(), app.get_name(),
                "{}: expected a value; found nothing; give one{}.", name,
                option->get_required() ? "" : ", or leave it out");
  }
}

/// The help without CLI11's marks: the value that a flag's negation sets, and a hidden argument's brackets in the
/// usage.
std::string help_text(const CLI::App& app) {
  std::string help = app.help();
  for (const auto& [mark, plain] : {std::pair{"{false}", ""}, {"[OPTIONS] []", "[OPTIONS]"}})
    if (const size_t at = help.find(mark); at != std::string::npos) help.replace(at, std::strlen(mark), plain);
  return help;
}

/// Reports a word that is not an option of the command. @throws InputError, always, with the nearest option.
[[noreturn]] void fail_extra(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const auto* option : app.get_options())
    if (option->get_name().starts_with('-')) known.push_back(option->get_name());
  const std::string near = nearest_name(word, known);
  throw InputError(app.get_name(),
                   fmt::format("expected an option or argument of {0}; found {1}; {2}", app.get_name(), word,
                               near.empty() ? fmt::format("see {} --help.", app.get_name())
                                            : fmt::format("did you mean {}?", near)));
}

}  // namespace

void add_threads_option(CLI::App& app, int& threads, const std::string& what) {
  app.add_option("--threads", threads, what + "; 0: as many as this process may use")
      ->type_name("N")
      ->check(CLI::Range(0, kMostThreads))
      ->capture_default_str();
}

std::vector<std::pair<std::string, std::string>> overrides_from_sets(const std::vector<std::string>& sets,
                                                                     const std::string& operation,
                                                                     const SetOption& option) {
  std::vector<std::pair<std::string, std::string>> overrides;
  for (const auto& set : sets) {
    const size_t equals = set.find('=');
    PRISM_CHECK(equals != std::string::npos && equals > 0, operation, "{}: expected {}; found \"{}\"; write e.g. {}.",
                option.name, option.form, set, option.example);
    overrides.emplace_back(set.substr(0, equals), set.substr(equals + 1));
  }
  return overrides;
}

bool parse(CLI::App& app, const Arguments& arguments, const char* failed) {
  const std::string footer = app.get_footer();
  app.footer(footer + (footer.empty() ? "" : "\n") + fmt::format("Exit status: 0 done, {}, 2 wrong input.", failed));
  app.add_flag_callback("--quiet", be_quiet, "print results and errors only: no progress, no notes");
  Arguments reversed(arguments.rbegin(), arguments.rend());  // CLI11 pops from the back
  try {
    app.parse(std::move(reversed));
    check_values(app);
    return true;
  } catch (const CLI::CallForHelp&) {
    for (auto* option : app.get_options([](const CLI::Option* o) { return o->get_group() == kDescribedInFooter; }))
      option->group("");  // hides it
    // Each subcommand prints its own help.
    fmt::print("{}", help_text(app));
    return false;
  } catch (const CLI::ExtrasError&) {
    const auto extra = app.remaining();
    fail_extra(app, extra.empty() ? "another" : extra.front());
  } catch (const InputError&) {  // from a callback that cannot read its value
    check_values(app);
    throw;
  } catch (const CLI::ParseError& error) {
    check_values(app);  // CLI11 does not name the value that it cannot convert if that is empty
    throw InputError(app.get_name(), fmt::format("{}; see {} --help.", error.what(), app.get_name()));
  }
}

}  // namespace prism
