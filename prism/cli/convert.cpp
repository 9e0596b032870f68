// prism convert: writes a changed copy of a model.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>
#include <string>

#include "prism/checkpoint/gguf/gguf_export.h"
#include "prism/checkpoint/graft.h"
#include "prism/checkpoint/model_folder.h"
#include "prism/cli/command.h"
#include "prism/cli/options/compute_options.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/progress.h"
#include "prism/core/text/names.h"

namespace prism {
namespace {

constexpr const char* kConvertHelp = R"(
The copy is a model folder. transformers loads it, unless the model has head budgets. If one of the families llama,
mistral, qwen2, qwen3 and smollm3 can express the model, config.json names the family; else transformers needs the
classes that are saved beside it (trust_remote_code=True).

If OUT ends in .gguf, the copy is one file, which llama.cpp runs. prism writes GGUF files of these families only; models
with head schedules, head budgets, sliding windows and the like are refused. Norms and biases are float32. q8_0 stores
32 weights in 34 bytes; matrices whose rows are not a multiple of 32 long are stored as float16. GGUF cannot express NFC
normalization, so it is left out; texts that are already in NFC get the same tokens.

A .bin file of llama2.c needs tokenizer.bin in the same folder.

  prism convert runs/novels models/novels --dtype bfloat16
  prism convert runs/novels models/novels.gguf --dtype q8_0
  prism convert stories15M.bin models/stories
  prism convert models/stories models/long_stories --context 1024 --rope-scaling yarn
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
  ContextOptions context;
};

/// How the model is read: exactly, with the context of the copy.
LoadOptions read_as(const ConvertWords& words) {
  return {torch::kFloat, WeightStorage::float32, words.context};
}

/// A dtype as model folders and GGUF files have it.
struct WrittenDtype {
  std::optional<torch::ScalarType> folder;
  BlockType gguf;
};
const std::map<std::string, WrittenDtype> kDtypes = {{"float32", {torch::kFloat, BlockType::f32}},
                                                     {"float16", {torch::kHalf, BlockType::f16}},
                                                     {"bfloat16", {torch::kBFloat16, BlockType::bf16}},
                                                     {"q8_0", {std::nullopt, BlockType::q8_0}}};

/// The model, or a grafted copy of it.
template <class Module>
Module grafted(const Module& model, const ConvertWords& words) {
  if (words.graft.empty()) return model;
  Module copy(graft_config(model->config()));
  copy_grafted(*model, *copy);
  return copy;
}

/// The same in the wanted dtype.
template <class Module>
Module converted(const Module& model, const ConvertWords& words) {
  Module copy = grafted(model, words);
  const torch::NoGradGuard no_gradients;
  const auto is_finite = [](const WeightEntry& entry) {
    return torch::isfinite(entry.weight.tensor()).all().item<bool>();
  };
  for (const auto& entry : copy->weights()) {
    const bool was_finite = is_finite(entry);
    entry.weight.to(kDtypes.at(words.dtype).folder.value());
    PRISM_CHECK(
        is_finite(entry) || !was_finite, "convert",
        "--dtype: expected weights within the range of {}; found larger ones in {}; choose bfloat16 or float32.",
        words.dtype, entry.name);
  }
  return copy;
}

/// Writes the copy into `folder`. @return  the number of its parameters.
int64_t write_copy(const ConvertWords& words, const std::filesystem::path& folder) {
  const auto stored = open_stored(find_model_folder(words.model));
  if (stored->config().classes == 0) {
    const ModelFolder model = load_model(*stored, read_as(words));
    const auto copy = converted(model.decoder, words);
    save_model(folder, *copy, model.tokenizer ? &*model.tokenizer : nullptr);
    return inference_parameters(copy->weights());
  }
  const ClassifierFolder model = load_classifier(*stored, read_as(words));
  const auto copy = converted(model.classifier, words);
  save_classifier(folder, copy, model.tokenizer ? &*model.tokenizer : nullptr, model.scheme);
  return inference_parameters(copy->weights());
}

/// Writes the copy as a model folder. @return  the number of its parameters.
int64_t convert_to_folder(const ConvertWords& words) {
  PRISM_CHECK(
      kDtypes.at(words.dtype).folder, "convert",
      "--dtype {}: expected an OUT that ends in .gguf; found {}; name a .gguf file, or choose float32, float16 or "
      "bfloat16.",
      words.dtype, words.out);
  NewFolder folder(words.out);
  const int64_t parameters = write_copy(words, folder.temporary());
  folder.commit();
  return parameters;
}

/// Writes the copy as a GGUF file. @return  the number of its parameters.
int64_t convert_to_gguf(const ConvertWords& words) {
  namespace fs = std::filesystem;
  const fs::path path = words.out;
  PRISM_CHECK(!fs::exists(fs::symlink_status(path)), "convert",
              "expected a free name for a new file; found that {} exists; name another, or move it away.", words.out);
  const auto stored = open_stored(find_model_folder(words.model));
  PRISM_CHECK(stored->config().classes == 0, "convert",
              "expected a language model for a .gguf file; found a classifier in {}; name a folder, which does not end "
              "in .gguf.",
              words.model);
  const ModelFolder model = load_model(*stored, read_as(words));
  const auto copy = grafted(model.decoder, words);
  const GgufOptions options{.type = kDtypes.at(words.dtype).gguf, .name = path.stem().string()};
  const MadeFolder parent(fs::absolute(path).parent_path());
  const auto mixed = save_gguf(path, *copy, model.tokenizer ? &*model.tokenizer : nullptr, options);
  if (!mixed.empty())
    fmt::print("float16 instead of {}, whose blocks of {} weights do not divide the rows: {}\n", words.dtype,
               block_layout(options.type).elements, fmt::join(mixed, ", "));
  return inference_parameters(copy->weights());
}

}  // namespace

int run_convert(const Arguments& arguments) {
  CLI::App app(
      "Copy a model: in another dtype, as a GGUF file for llama.cpp, with a longer context, or with gates in its gates "
      "(G2LU).",
      "prism convert");
  app.footer(kConvertHelp);
  ConvertWords words;
  app.add_option("MODEL", words.model, kModelHelp)->required();
  app.add_option("OUT", words.out, "folder or .gguf file for the copy, which must not exist yet")->required();
  app.add_option("--dtype", words.dtype, "dtype of the copy's weights; q8_0: for .gguf files")
      ->check(CLI::IsMember(names_of(kDtypes)))
      ->capture_default_str();
  app.add_option("--graft", words.graft, "g2lu: give the gates of feed-forward parts a gate of their own")
      ->check(CLI::IsMember({"g2lu"}));
  add_context_options(app, words.context);
  if (!parse(app, arguments)) return 0;
  const bool is_file = std::filesystem::path(words.out).extension() == ".gguf";
  const int64_t parameters = is_file ? convert_to_gguf(words) : convert_to_folder(words);
  fmt::print("{}: {} parameters{} in {}\n", words.out, short_number(static_cast<double>(parameters)),
             words.graft.empty() ? "" : ", inner gates included,", words.dtype);
  return 0;
}

}  // namespace prism
