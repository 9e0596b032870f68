#include "prism/cli/command.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <regex>
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
  constexpr std::string_view kMayBeEmpty[] = {"--separator", "PROMPT", "--text"};
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

/// Returns true if the command reads a text from the command line.
bool takes_text(const CLI::App& app) {
  const auto options = app.get_options();
  return std::any_of(options.begin(), options.end(), [](const CLI::Option* option) {
    const std::string name = option->get_name();
    return name == "PROMPT" || name == "TEXT" || name == "--text";
  });
}

/// Returns true if --set of the command takes fields of a recipe.
bool takes_fields(const CLI::App& app) {
  const auto* set = app.get_option_no_throw("--set");
  return set != nullptr && set->get_description().starts_with("FIELD=VALUE");
}

/// Reports a word that is not an option of the command. @throws InputError, always, with the nearest option.
[[noreturn]] void fail_extra(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known;
  for (const auto* option : app.get_options())
    if (option->get_name().starts_with('-')) known.push_back(option->get_name());
  const std::string near = nearest_name(word, known);
  const bool is_field = word.starts_with("--") && word.find('.') != std::string::npos && takes_fields(app);
  const char* quotes = takes_text(app) ? "put a text of several words in quotes" : "leave it out";
  throw InputError(app.get_name(),
                   fmt::format("expected an option or argument of {0}; found {1}; {2}", app.get_name(), word,
                               !near.empty() ? fmt::format("did you mean {}?", near)
                               : is_field    ? fmt::format("write --set {}=VALUE.", word.substr(2, word.find('=') - 2))
                               : word.starts_with('-') ? fmt::format("see {} --help.", app.get_name())
                                                       : fmt::format("{}, or see {} --help.", quotes, app.get_name())));
}

/// What stands before and after some words of a text.
std::optional<std::pair<std::string, std::string>> around(const std::string& text, std::string_view words) {
  const size_t at = text.find(words);
  if (at == std::string::npos) return std::nullopt;
  return std::pair{text.substr(0, at), text.substr(at + words.size())};
}

template <class Number>
bool is_number(std::string_view text) {
  Number value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  return code == std::errc() && end == text.data() + text.size();
}

/// What is wrong with the first of the values, with commas between them, that is not a number of the option's type.
std::string number_sentence(const CLI::App& app, const std::string& option, const std::string& values) {
  const auto* known = app.get_option_no_throw(option);
  const std::string type = known == nullptr ? "" : known->get_type_name();
  for (size_t at = 0; at <= values.size();) {
    const size_t end = std::min(values.find(',', at), values.size());
    const std::string value = values.substr(at, end - at);
    const bool is_fraction = is_number<double>(value) && !is_number<int64_t>(value);
    if (is_fraction || !is_number<double>(value))
      return fmt::format("{}: expected a {}; found {}; change it.", option,
                         is_fraction || type.find("INT") != std::string::npos ? "whole number" : "number", value);
    at = end + 1;
  }
  return fmt::format("{}: expected a number; found {}; change it.", option, values);
}

/// A list or range as CLI11 writes it, "32,64" or "0.500000 to 1.000000", as "32, 64" or "0.5 to 1".
std::string readable(const std::string& text) {
  const auto blanks = std::regex_replace(text, std::regex(",(?! )"), ", ");
  return std::regex_replace(std::regex_replace(blanks, std::regex(R"(\.0+\b)"), ""), std::regex(R"((\.\d*[1-9])0+\b)"),
                            "$1");
}

/// sentence_of() for values of another number than the option takes; empty for other messages.
std::string count_sentence(const std::string& text) {
  if (const auto parts = around(text, ": At Most 1 required but received "))
    return fmt::format("{}: expected one value; found {}; leave {} out.", parts->first, parts->second,
                       parts->second == "2" ? "one" : "all but one");
  if (const auto parts = around(text, ": 1 required "))
    return fmt::format("{}: expected a value; found none; give one.", parts->first);
  return "";
}

/// CLI11's message as a sentence that says what was expected, what was found, and the way out.
std::string sentence_of(const CLI::ParseError& error, const CLI::App& app) {
  const std::string text = error.what();
  const std::string& command = app.get_name();
  if (const auto parts = around(text, " is required"))
    return fmt::format("expected {}; found none; see {} --help.", parts->first, command);
  if (const auto parts = around(text, " requires "))
    return fmt::format("expected {1} with {0}; found none; add it, or leave out {0}.", parts->first, parts->second);
  if (const auto parts = around(text, " excludes "))
    return fmt::format("expected only one of {} and {}; found both; leave one out.", parts->first, parts->second);
  if (const auto parts = around(text, ": Value "))
    if (const auto range = around(parts->second, " not in range "))
      return fmt::format("{}: expected {}; found {}; change it.", parts->first, readable(range->second), range->first);
  if (const auto parts = around(text, " not in {"))
    if (const auto value = around(parts->first, ": "))
      return fmt::format("{}: expected one of {}; found {}; choose one of them.", value->first,
                         readable(parts->second.substr(0, parts->second.find('}'))), value->second);
  if (const auto parts = around(text, "Could not convert: "))
    if (const auto value = around(parts->second, " = ")) return number_sentence(app, value->first, value->second);
  if (auto sentence = count_sentence(text); !sentence.empty()) return sentence;
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
    throw InputError(app.get_name(), sentence_of(error, app));
  }
}

}  // namespace prism
