// prism analyse weights: the stable rank of the projections of feed-forward parts.
#include "prism/analysis/feed_forward/stable_ranks.h"
#include "prism/checkpoint/model_folder.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"

namespace prism {
namespace {

constexpr const char* kWeightsHelp = R"(
The stable rank of a matrix is the sum of its squared singular values divided by the largest of them: between 1 and its
rank. It tells how many directions the matrix really uses. A matrix that layers share (mirrored layers) is shown in each
of them.

  prism analyse weights runs/mirrored
  prism analyse weights runs/mirrored --json | tee ranks.jsonl        # prism report --analysis ranks.jsonl
)";

}  // namespace

int run_analyse_weights(const Arguments& arguments) {
  CLI::App app(std::string("Measure the stable rank of the projections of feed-forward parts.\n") + kWeightsHelp,
               "prism analyse weights");
  std::string name;
  OutputWords output;
  app.add_option("MODEL", name, kModelHelp)->required();
  add_output_options(app, output);
  if (!parse(app, arguments)) return 0;
  const auto folder = make_figures_folder(output.figures);
  const torch::NoGradGuard no_gradients;
  const auto stored = open_stored(find_model_folder(name));
  const auto weights = stored->config().classes > 0 ? load_classifier(*stored, torch::kFloat).classifier->weights()
                                                    : load_model(*stored, torch::kFloat).decoder->weights();
  AnalysisLines lines({{"analysis", "weights"}, {"model", name}});
  for (const auto& matrix : measure_stable_ranks(weights)) lines.add(fields_to_json(matrix));
  lines.print(output);
  return 0;
}

}  // namespace prism
