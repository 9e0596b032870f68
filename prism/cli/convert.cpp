// prism convert: writes a changed copy of a model.
#include <fmt/format.h>

#include <string>

#include "prism/checkpoint/graft.h"
#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/progress.h"

namespace prism {
namespace {

constexpr const char* kConvertHelp = R"(
  prism convert runs/swiglu models/grafted --graft g2lu
  prism train --recipe recipe.json --model.ffn.kind g2lu --model.ffn.gate_bias true --init models/grafted \
    --out runs/gates --train.fixed '["*self_attn*", "*norm*", "*embed*", "*up_proj*", "*down_proj*"]'

--graft g2lu turns feed-forward parts of kind swiglu, W_down (silu(W_gate x) * W_up x), into
W_down (silu(W_gate x * silu(W_inner x + b)) * W_up x) with W_inner = 0 and silu(b) = 1. The copy computes what the
model computes, up to rounding, and training can teach its gates more than a single gate can express. The second command
trains only the copy's gates; without --train.fixed, all weights are trained. recipe.json is the recipe of runs/swiglu.
)";

struct ConvertWords {
  std::string model, out, graft;
};

/// Writes a grafted copy of a model into `folder`. @return  the number of its parameters.
int64_t write_grafted(const std::string& name, const ModelConfig& config, const std::filesystem::path& folder) {
  if (config.classes == 0) {
    const ModelFolder model = load_model(name, torch::kFloat);
    const Decoder copy(config);
    copy_grafted(*model.decoder, *copy);
    save_model(folder, *copy, model.tokenizer ? &*model.tokenizer : nullptr);
    return inference_parameters(copy->weights());
  }
  const ClassifierFolder model = load_classifier(name, torch::kFloat);
  const Classifier copy(config);
  copy_grafted(*model.classifier, *copy);
  save_classifier(folder, copy, model.tokenizer ? &*model.tokenizer : nullptr, model.scheme);
  return inference_parameters(copy->weights());
}

}  // namespace

int run_convert(const Arguments& arguments) {
  CLI::App app("Write a changed copy of a model.", "prism convert");
  app.footer(kConvertHelp);
  ConvertWords words;
  app.add_option("MODEL", words.model, "a model folder, or a run folder (its last checkpoint)")->required();
  app.add_option("OUT", words.out, "folder for the copy, which must not exist yet")->required();
  app.add_option("--graft", words.graft, "g2lu: give the gates of feed-forward parts a gate of their own")
      ->required()
      ->check(CLI::IsMember({"g2lu"}));
  if (!parse(app, arguments)) return 0;
  const auto config = graft_config(load_config(words.model));
  NewFolder folder(words.out);
  const int64_t parameters = write_grafted(words.model, config, folder.temporary());
  folder.commit();
  fmt::print("{}: {} parameters, inner gates included\n", words.out, short_number(static_cast<double>(parameters)));
  return 0;
}

}  // namespace prism
