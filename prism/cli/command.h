// What one `prism <command>` is: a row of main.cpp's table, and the parsing that all commands share.
//
//   int run_info(const Arguments& arguments) {
//     CLI::App app("what a model costs, layer by layer", "prism info");
//     app.add_option("MODEL", path, "recipe or model folder")->required();
//     if (!parse(app, arguments)) return 0;      // --help was asked for and printed
//     ...
//   }
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace prism {

/// The words after the command's name.
using Arguments = std::vector<std::string>;

/// Adds --threads, from 0 (as many as the process may use, core/machine.h) to 1024.
void add_threads_option(CLI::App& app, int& threads, const std::string& what = "threads");

/// Parses. Returns false after printing help, which says at its end what `failed` stands for.
/// @throws InputError for words that do not fit.
bool parse(CLI::App& app, const Arguments& arguments, const char* failed = "1 failed");

/// The fields that words like "train.tokens=4M" set, each with its value.
/// @throws InputError for a word without "=".
std::vector<std::pair<std::string, std::string>> overrides_from_sets(const std::vector<std::string>& sets,
                                                                     const std::string& operation);

/// For a word that the command does not have. @throws InputError with the nearest option.
[[noreturn]] void fail_extra(const CLI::App& app, const std::string& word);

/// One function per command, in the file of its name; each returns the exit status.
int run_attend(const Arguments& arguments);
int run_analyse(const Arguments& arguments);
int run_bench(const Arguments& arguments);
int run_eval(const Arguments& arguments);
int run_generate(const Arguments& arguments);
int run_info(const Arguments& arguments);
int run_report(const Arguments& arguments);
int run_sweep(const Arguments& arguments);
int run_tokenize(const Arguments& arguments);
int run_tokenizer(const Arguments& arguments);
int run_train(const Arguments& arguments);

}  // namespace prism
