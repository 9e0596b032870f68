// prism: a table of commands. The library throws; this is the one place that prints a failure and exits.
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <new>
#include <string>

#include "prism/cli/command.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/mapped_file.h"
#include "prism/core/names.h"
#include "prism/core/printable.h"

namespace prism {
namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};

constexpr std::array kCommands = {
    Command{"train", "train a model by a recipe; resume a run", run_train},
    Command{"sweep", "train a recipe in variations with several seeds, and compare them", run_sweep},
    Command{"generate", "continue a text with a model", run_generate},
    Command{"eval", "measure a model on a text", run_eval},
    Command{"analyse", "look inside models: what heads attend to and how far back, entropy, norms, gradients, maps",
            run_analyse},
    Command{"attend", "attend over the key blocks that a selector keeps, for any tensors", run_attend},
    Command{"info", "parameters, FLOPs and cache of a recipe or model, layer by layer", run_info},
    Command{"bench", "how fast attention, sparse prompts and training are here, against LibTorch's", run_bench},
    Command{"report", "one page that compares runs", run_report},
    Command{"tokenizer", "train, inspect and apply a tokenizer", run_tokenizer},
    Command{"tokenize", "turn text files into token shards", run_tokenize},
};

void print_help() {
  fmt::print(
      "Usage: prism COMMAND [options]\n\nTransformers whose attention is not uniform: train, evaluate, generate.\n\n");
  for (const auto& command : kCommands) fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print(
      "\n`prism COMMAND --help` explains each, `prism --version` says which this is. Exit status: 0 done, 1 failed, 2 "
      "wrong input.\n");
}

int run(const Arguments& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    print_help();
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") {
    fmt::print("prism {}\n", PRISM_VERSION);
    return 0;
  }
  const auto* command =
      std::find_if(kCommands.begin(), kCommands.end(), [&](const auto& row) { return words[0] == row.name; });
  if (command == kCommands.end()) {
    std::vector<std::string> names;
    for (const auto& row : kCommands) names.emplace_back(row.name);
    const std::string near = nearest_name(words[0], names);
    throw InputError("prism", fmt::format("expected a command; found \"{}\"; {}", words[0],
                                          near.empty() ? "see prism --help." : fmt::format("did you mean {}?", near)));
  }
  return command->run(Arguments(words.begin() + 1, words.end()));
}

/// run(), with what fmt throws when it cannot print as the failure it is.
int run_checked(const Arguments& words) {
  try {
    return run(words);
  } catch (const std::filesystem::filesystem_error&) {
    throw;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) fail_output();
    throw;
  }
}

/// Whether a path that cannot be used is wrong input, as it is where files are opened, and no failure of the system.
bool is_wrong_path(const std::error_code& code) {
  return code == std::errc::too_many_symbolic_link_levels || code == std::errc::filename_too_long ||
         code == std::errc::not_a_directory || code == std::errc::no_such_file_or_directory ||
         code == std::errc::permission_denied;
}

}  // namespace
}  // namespace prism

int main(int count, char** words) {
  ::prctl(PR_SET_NAME, "prism");  // not "exe", as a start through /proc/self/exe leaves it
  prism::open_standard_streams();
  prism::explain_shortened_files();
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond its limit is reported by who writes it
  int status = 1;
  try {
    const int done = prism::run_checked(prism::Arguments(words + 1, words + count));
    prism::flush_output();  // results that did not reach their file are a failure, not a success
    status = done;
  } catch (const prism::InputError& error) {
    prism::say("{}\n", prism::plain_line(error.what()));
    status = 2;
  } catch (const prism::FailedError& error) {
    prism::say("{}\n", prism::plain_line(error.what()));
  } catch (const c10::Error& error) {
    // LibTorch's own message has a line for each frame of the stack.
    const std::string whole = error.what_without_backtrace();
    prism::say(
        "[torch] expected an operation to succeed; found: {}; choose smaller sizes, or report this as a fault of "
        "prism.\n",
        whole.substr(0, whole.find('\n')));
  } catch (const std::bad_alloc&) {
    prism::say("[prism] expected enough memory; found too little; choose smaller sizes.\n");
  } catch (const std::filesystem::filesystem_error& error) {
    prism::say("[files] expected to reach {}; found: {}; check that it is there and may be used.\n",
               prism::plain_line(error.path1().string()), error.code().message());
    if (prism::is_wrong_path(error.code())) status = 2;
  } catch (const std::exception& error) {
    prism::say("[prism] {}\n", error.what());
  }
  return status;
}
