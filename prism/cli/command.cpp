#include "prism/cli/command.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
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
                               !near.empty()           ? fmt::format("did you mean {}?", near)
                               : word.starts_with('-') ? fmt::format("see {} --help.", app.get_name())
                                                       : fmt::format("put a text of several words in quotes, or see {} "
                                                                     "--help.",
                                                                     app.get_name())));
}

/// What stands before and after some words of a text.
std::optional<std::pair<std::string, std::string>> around(const std::string& text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string::npos) return std::nullopt;
  return std::pair{text.substr(0, at), text.substr(at + words.size())};
}

/// CLI11's message as a sentence that says what was expected, what was found, and the way out.
std::string sentence_of(const CLI::ParseError& error, const std::string& command) {
  const std::string text = error.what();
  if (const auto parts = around(text, " is required"))
    return fmt::format("expected {}; found none; see {} --help.", parts->first, command);
  if (const auto parts = around(text, " requires "))
    return fmt::format("expected {1} with {0}; found none; add it, or leave out {0}.", parts->first, parts->second);
  if (const auto parts = around(text, " excludes "))
    return fmt::format("expected {} or {}; found both; leave one out.", parts->first, parts->second);
  if (const auto parts = around(text, ": Value "))
    if (const auto range = around(parts->second, " not in range "))
      return fmt::format("{}: expected {}; found {}; change it.", parts->first, range->second, range->first);
  if (const auto parts = around(text, " not in {"))
    if (const auto value = around(parts->first, ": "))
      return fmt::format("{}: expected one of {}; found {}; choose one of them.", value->first,
                         parts->second.substr(0, parts->second.find('}')), value->second);
  if (const auto parts = around(text, ": 1 required "))
    return fmt::format("{}: expected a value; found none; give one.", parts->first);
  return fmt::format("{}; see {} --help.", text, command);
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
    throw InputError(app.get_name(), sentence_of(error, app.get_name()));
  }
}

}  // namespace prism
