// prism analyse capture: writes queries, keys, values and residual stream of layers to safetensors files.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "prism/analysis/capture_probe.h"
#include "prism/checkpoint/tensor_file.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/reading.h"
#include "prism/core/files.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCaptureHelp = R"(
Writes FOLDER/layerN.safetensors for each chosen layer N. It holds q [1, H, T, D] and k [1, G, T, D] as attention reads
them, after the rotary encoding; v [1, G, T, E]; and residual [1, T, d_model], the residual stream before the layer.
prism attend, prism analyse spectrum and any program that reads safetensors can use the files. With --logits,
FOLDER/logits.safetensors holds tokens [1, T], the ids that the model reads, and logits: [1, T, vocabulary] of a
language model, [1, classes] of a classifier.

  prism analyse capture runs/prism book.txt --layers 0,5 --out captured
  prism attend captured/layer5.safetensors --selector spectral
)";

}  // namespace

int run_analyse_capture(const Arguments& arguments) {
  CLI::App app(
      std::string("Save queries, keys, values and residual stream of layers as safetensors files.\n") + kCaptureHelp,
      "prism analyse capture");
  ReadingWords words;
  std::optional<std::string> layers;
  std::string out;
  bool with_logits = false;
  add_reading_options(app, words, /*with_data=*/false);
  app.add_option("--layers", layers, "layers, counted from 0, e.g. 0,3-5; default: all")->type_name("LIST");
  app.add_flag("--logits", with_logits, "also save the logits");
  app.add_option("--out", out, "folder for the files")->required()->type_name("FOLDER");
  if (!parse(app, arguments)) return 0;
  const torch::NoGradGuard no_gradients;
  Reading reading(words);
  const auto& configs = reading.config().layers;
  CaptureProbe probe(parse_numbers(layers, static_cast<int64_t>(configs.size()), "--layers"), configs);
  std::vector<NamedTensor> read;
  reading.show([&](Pass& pass) {
    pass.context.probe = &probe;
    const auto hidden = reading.model().forward(pass.tokens_BT, pass.context);
    if (with_logits) read = {{"tokens", pass.tokens_BT.clone()}, {"logits", reading.logits(pass, hidden)}};
  });
  make_folder(out);
  const auto write = [&](const std::string& name, const std::vector<NamedTensor>& tensors) {
    const auto file = fs::path(out) / (name + ".safetensors");
    write_tensors(file, tensors);
    fmt::print("{}\n", file.string());
  };
  for (const auto& [layer, tensors] : probe.captured()) write(fmt::format("layer{}", layer), tensors);
  if (with_logits) write("logits", read);
  return 0;
}

}  // namespace prism
