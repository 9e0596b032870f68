// prism analyse: a table of analyses of what happens inside models.
#include "prism/cli/analysis/analyse.h"

#include <fmt/format.h>

#include <map>
#include <string>

#include "prism/core/text/names.h"

namespace prism {
namespace {

struct Analysis {
  const char* summary;
  int (*run)(const Arguments&);
};

const std::map<std::string, Analysis>& analyses() {
  static const std::map<std::string, Analysis> all = {
      {"attention-distance", {"how many tokens back each layer attends", run_analyse_distance}},
      {"budgets",
       {"how many and which heads a classifier's head budgets use, and what that saves", run_analyse_budgets}},
      {"capture", {"queries, keys, values and residual stream of layers as safetensors files", run_analyse_capture}},
      {"entropy", {"how evenly each head spreads its attention", run_analyse_entropy}},
      {"gates", {"how many gates of the feed-forward parts are closed, and how they open", run_analyse_gates}},
      {"gradients", {"norm of each parameter's gradient relative to its values", run_analyse_gradients}},
      {"heads",
       {"what each head attends to: previous token, first token, punctuation, repetitions", run_analyse_heads}},
      {"maps", {"which words each word of a text attends to, as pictures", run_analyse_maps}},
      {"norms", {"size of the residual stream before each layer, and dead units", run_analyse_norms}},
      {"spectrum",
       {"how much of each head's queries and keys remains when blocks are averaged, as some selectors do",
        run_analyse_spectrum}},
      {"twins",
       {"how alike the layers that share projections are, and whether other pairings would do as well",
        run_analyse_twins}},
      {"weights", {"stable rank of the projections of the feed-forward parts", run_analyse_weights}}};
  return all;
}

}  // namespace

int run_analyse(const Arguments& arguments) {
  if (arguments.empty() || arguments[0] == "--help" || arguments[0] == "-h") {
    fmt::print("Usage: prism analyse KIND MODEL [input] [options]\n\n");
    for (const auto& [name, analysis] : analyses()) fmt::print("  {:<20}{}\n", name, analysis.summary);
    fmt::print("\n`prism analyse {} --help` explains that analysis. Exit status: 0 done, 1 failed, 2 wrong input.\n",
               analyses().begin()->first);
    return arguments.empty() ? 2 : 0;
  }
  const auto& analysis = find_by_name(analyses(), arguments[0], "analyse", "analysis");
  return analysis.run(Arguments(arguments.begin() + 1, arguments.end()));
}

}  // namespace prism
