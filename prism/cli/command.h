// The functions behind `prism <command>`, which main.cpp lists in a table, and the parsing that all commands share.
//
//   int run_info(const Arguments& arguments) {
//     CLI::App app("List parameters, FLOPs and cache size layer by layer.", "prism info");
//     app.add_option("MODEL", path, "recipe or model folder")->required();
//     if (!parse(app, arguments)) return 0;      // --help was given, and the help has been printed
//     ...
//   }
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace prism {

/// The words after the command's name on the command line.
using Arguments = std::vector<std::string>;

/// Help of the MODEL of commands that take any model.
constexpr const char* kModelHelp =
    "a model folder, a run folder (its last checkpoint), a .gguf file or a .bin file of llama2.c";

/// Adds --threads, 0 to 1024. 0 means as many threads as the process may use (core/machine.h).
void add_threads_option(CLI::App& app, int& threads, const std::string& what = "threads");

/// Parses the arguments. Returns false if --help was given and printed.
/// @param failed  description of exit status 1, shown at the end of the help.
/// @throws InputError for arguments that the command does not accept.
bool parse(CLI::App& app, const Arguments& arguments, const char* failed = "1 failed");

/// How an option that sets fields is described in messages.
struct SetOption {
  const char *name = "--set", *form = "FIELD=VALUE", *example = "train.tokens=4M";
};

/// Splits the values of such an option, e.g. "train.tokens=4M", into fields and values.
/// @throws InputError for a value without "=".
std::vector<std::pair<std::string, std::string>> overrides_from_sets(const std::vector<std::string>& sets,
                                                                     const std::string& operation,
                                                                     const SetOption& option = {});

/// Group of options that the help does not list, since its footer describes them. Their values may be empty.
constexpr const char* kDescribedInFooter = "described in the footer";

/// One function per command, in the file named after it. Each returns the exit status.
int run_attend(const Arguments& arguments);
int run_analyse(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_classify(const Arguments& arguments);
int run_convert(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_chat(const Arguments& arguments);
int run_info(const Arguments& arguments);
int run_report(const Arguments& arguments);
int run_sweep(const Arguments& arguments);
int run_tokenize(const Arguments& arguments);
int run_tokenizer(const Arguments& arguments);
int run_train(const Arguments& arguments);

}  // namespace prism
