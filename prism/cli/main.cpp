// The prism program: a table of commands. The library throws; only this file prints failures and exits.
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
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/kernels/memory/small_blocks.h"

namespace prism {
namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Arguments&);
};

constexpr std::array kCommands = {
    Command{"train", "train a model from a recipe; resume a run", run_train},
    Command{"sweep", "train variations of a recipe over several seeds and compare them", run_sweep},
    Command{"generate", "continue a prompt", run_generate},
    Command{"chat", "talk with a model, turn by turn", run_chat},
    Command{"classify", "label texts with a classifier", run_classify},
    Command{"eval", "measure perplexity, divergence or accuracy; compare two models on the same texts", run_eval},
    Command{
        "analyse",
        "inspect a model: entropy, distance and maps of attention, head budgets (classifiers), norms, gradients, gates",
        run_analyse},
    Command{"attend", "run block-sparse attention on saved queries, keys and values; show what is kept and lost",
            run_attend},
    Command{"info", "list the parameters, FLOPs and cache size of a model, layer by layer", run_info},
    Command{"bench",
            "compare prism's speed with LibTorch's: attention, decoding, prefill, training; measure the inference of a "
            "model, the savings of head budgets and the cost of each kind of feed-forward part",
            run_bench},
    Command{"report", "write a page that compares runs, or serve it while they train", run_report},
    Command{"convert",
            "copy a model in another dtype or as a GGUF file, or turn its SwiGLU feed-forward parts into G2LU, whose "
            "gate is itself gated",
            run_convert},
    Command{"tokenizer", "train byte-level BPE tokenizers; inspect and apply published ones", run_tokenizer},
    Command{"tokenize", "convert text files or conversations to token shards, or labelled texts to tokens and labels",
            run_tokenize},
};

void print_help() {
  fmt::print(
      "Usage: prism COMMAND [options]\n\nTrains, evaluates and runs transformers in which each layer may have its own "
      "number and width of attention heads.\n\n");
  for (const auto& command : kCommands) fmt::print("  {:<10} {}\n", command.name, command.summary);
  fmt::print(
      "\n`prism COMMAND --help` explains a command; `prism --version` prints the version. Exit status: 0 done, 1 "
      "failed, 2 wrong input.\n");
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

/// Calls run(). If fmt throws because standard output cannot be written, reports that as a failed output.
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

/// Returns true if the error means that the path itself is wrong input. All other errors are failures of the system.
bool is_wrong_path(const std::error_code& code) {
  return code == std::errc::too_many_symbolic_link_levels || code == std::errc::filename_too_long ||
         code == std::errc::not_a_directory || code == std::errc::no_such_file_or_directory ||
         code == std::errc::permission_denied;
}

constexpr const char* kLittleMemory = "[prism] expected enough memory; found too little; choose smaller sizes.\n";

}  // namespace
}  // namespace prism

int main(int count, char** words) {
  ::prctl(PR_SET_NAME, "prism");  // starting through /proc/self/exe leaves the name "exe"
  prism::open_standard_streams();
  prism::explain_shortened_files();
  prism::reuse_small_blocks();
  std::signal(SIGXFSZ, SIG_IGN);  // writing beyond the file size limit then returns an error
  int status = 1;
  try {
    const int done = prism::run_checked(prism::Arguments(words + 1, words + count));
    prism::flush_output();  // unwritten results are a failure
    status = done;
  } catch (const prism::InputError& error) {
    prism::say("{}\n", prism::plain_line(error.what()));
    status = 2;
  } catch (const prism::FailedError& error) {
    prism::say("{}\n", prism::plain_line(error.what()));
  } catch (const c10::Error& error) {
    // The first line is the message; the lines after it are a stack trace.
    const std::string whole = error.what_without_backtrace();
    if (whole.find("DefaultCPUAllocator") != std::string::npos) {
      prism::say(prism::kLittleMemory);
    } else {
      prism::say(
          "[torch] expected an operation to succeed; found: {}; choose smaller sizes, or report this as a bug in "
          "prism.\n",
          whole.substr(0, whole.find('\n')));
    }
  } catch (const std::bad_alloc&) {
    prism::say(prism::kLittleMemory);
  } catch (const std::filesystem::filesystem_error& error) {
    prism::say("[files] expected to reach {}; found: {}; check that it exists and that you may use it.\n",
               prism::plain_line(error.path1().string()), error.code().message());
    if (prism::is_wrong_path(error.code())) status = 2;
  } catch (const std::exception& error) {
    prism::say("[prism] {}\n", error.what());
  }
  return status;
}
