// prism analyse twins: layers that share projections.
#include "prism/analysis/feed_forward/twins.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"
#include "prism/core/error.h"

namespace prism {
namespace {

constexpr const char* kTwinsHelp = R"(Compare layers that share projections (mirrored layers).

For each layer that uses another layer's projections, the table shows how alike the outputs of the two feed-forward
parts are, as centered kernel alignment (CKA): 1 if one is a rotation of the other, up to scale and shift, 0 if they
have nothing in common. Then the loss is measured with other pairings of layers than in training: at most 8, drawn at
random. If it hardly rises, it does not matter which layers share.

  prism analyse twins runs/mirrored book.txt
  prism analyse twins runs/mirrored --data data/novels --sequences 32
)";

constexpr int64_t kPermutations = 8;

double mean_loss(Reading& reading) {
  double sum = 0;
  int64_t count = 0;
  reading.show(
      [&](Pass& pass) {
        const auto [loss, labels] = reading.loss(pass);
        sum += loss.item<double>() * static_cast<double>(labels);
        count += labels;
      },
      /*labelled=*/true);
  return sum / static_cast<double>(count);
}

}  // namespace

int run_analyse_twins(const Arguments& arguments) {
  return run_reading_analysis(arguments, {"twins", kTwinsHelp, /*has_loss=*/true}, [](Reading& reading) {
    const torch::NoGradGuard no_gradients;
    TwinProbe probe(reading.config().layers);
    reading.show_to(probe);
    auto lines = lines_of(probe.result());
    PRISM_CHECK(!lines.empty(), "analyse",
                "expected a model with layers that share projections (mirror_of); found none; name another model.");
    for (auto& line : lines) line["kind"] = "pair";
    if (!reading.has_labels()) return lines;
    if (const auto permuted =
            permute_twins(reading.model(), kPermutations, /*seed=*/1, [&] { return mean_loss(reading); }))
      lines.push_back({{"kind", "permuted"}, {"loss", permuted->loss}, {"permuted_losses", permuted->permuted_losses}});
    return lines;
  });
}

}  // namespace prism
