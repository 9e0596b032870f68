// prism convert: writes a changed copy of a model.
#include <fmt/format.h>

#include <map>
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
The copy is a model folder that transformers loads. If one of the families llama, mistral, qwen2, qwen3 and smollm3 can
express the model, config.json names the family; else transformers needs the classes that are saved beside it
(trust_remote_code=True).

  prism convert runs/novels models/novels --dtype bfloat16
  prism convert runs/swiglu models/grafted --graft g2lu
  prism train --recipe recipe.json --model.ffn.kind g2lu --model.ffn.gate_bias true --init models/grafted \
    --out runs/gates --train.fixed '["*self_attn*", "*norm*", "*embed*", "*up_proj*", "*down_proj*"]'

--graft g2lu turns feed-forward parts of kind swiglu, W_down (silu(W_gate x) * W_up x), into
W_down (silu(W_gate x * silu(W_inner x + b)) * W_up x) with W_inner = 0 and silu(b) = 1. The copy computes what the
model computes, up to rounding, and training can teach its gates more than a single gate can express. The last command
trains only the copy's gates; without --train.fixed, all weights are trained. recipe.json is the recipe of runs/swiglu.
)";

struct ConvertWords {
  std::string model, out, graft, dtype = "float32";
};

const std::map<std::string, torch::ScalarType> kTypes = {
    {"float32", torch::kFloat}, {"float16", torch::kHalf}, {"bfloat16", torch::kBFloat16}};

/// The model, or a grafted copy of it, in the wanted dtype.
template <class Module>
Module converted(const Module& model, const ConvertWords& words) {
  Module copy = model;
  if (!words.graft.empty()) {
    copy = Module(graft_config(model->config()));
    copy_grafted(*model, *copy);
  }
  const torch::NoGradGuard no_gradients;
  const auto is_finite = [](const WeightEntry& entry) {
    return torch::isfinite(entry.weight.tensor()).all().item<bool>();
  };
  for (const auto& entry : copy->weights()) {
    const bool was_finite = is_finite(entry);
    entry.weight.to(kTypes.at(words.dtype));
    PRISM_CHECK(
        is_finite(entry) || !was_finite, "convert",
        "--dtype: expected weights within the range of {}; found larger ones in {}; choose bfloat16 or float32.",
        words.dtype, entry.name);
  }
  return copy;
}

/// Writes the copy into `folder`. @return  the number of its parameters.
int64_t write_copy(const ConvertWords& words, const std::filesystem::path& folder) {
  if (load_config(words.model).classes == 0) {
    const ModelFolder model = load_model(words.model, torch::kFloat);
    const auto copy = converted(model.decoder, words);
    save_model(folder, *copy, model.tokenizer ? &*model.tokenizer : nullptr);
    return inference_parameters(copy->weights());
  }
  const ClassifierFolder model = load_classifier(words.model, torch::kFloat);
  const auto copy = converted(model.classifier, words);
  save_classifier(folder, copy, model.tokenizer ? &*model.tokenizer : nullptr, model.scheme);
  return inference_parameters(copy->weights());
}

}  // namespace

int run_convert(const Arguments& arguments) {
  CLI::App app("Write a copy of a model in another dtype, or with other feed-forward parts.", "prism convert");
  app.footer(kConvertHelp);
  ConvertWords words;
  app.add_option("MODEL", words.model, "a model folder, a run folder (its last checkpoint) or a .gguf file")->required();
  app.add_option("OUT", words.out, "folder for the copy, which must not exist yet")->required();
  app.add_option("--dtype", words.dtype, "dtype of the copy's weights")
      ->check(CLI::IsMember(kTypes))
      ->capture_default_str();
  app.add_option("--graft", words.graft, "g2lu: give the gates of feed-forward parts a gate of their own")
      ->check(CLI::IsMember({"g2lu"}));
  if (!parse(app, arguments)) return 0;
  NewFolder folder(words.out);
  const int64_t parameters = write_copy(words, folder.temporary());
  folder.commit();
  fmt::print("{}: {} parameters{} in {}\n", words.out, short_number(static_cast<double>(parameters)),
             words.graft.empty() ? "" : ", inner gates included,", words.dtype);
  return 0;
}

}  // namespace prism
