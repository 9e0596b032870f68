// prism analyse capture: writes queries, keys, values and residual stream of layers to safetensors files.
#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>

#include "prism/analysis/capture_probe.h"
#include "prism/checkpoint/tensor_file.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/reading.h"
#include "prism/core/files.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCaptureHelp = R"(
Writes FOLDER/layerN.safetensors for each chosen layer N. It holds q [1, H, T, D] and k [1, G, T, D] as attention reads
them, after the rotary encoding; v [1, G, T, E]; and residual [1, T, d_model], the residual stream before the layer.
prism attend, prism analyse spectrum and any program that reads safetensors can use the files.

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
  add_reading_options(app, words, /*with_data=*/false);
  app.add_option("--layers", layers, "layers, counted from 0, e.g. 0,3-5; default: all")->type_name("LIST");
  app.add_option("--out", out, "folder for the files")->required()->type_name("FOLDER");
  if (!parse(app, arguments)) return 0;
  const torch::NoGradGuard no_gradients;
  Reading reading(words);
  const auto& configs = reading.config().layers;
  CaptureProbe probe(parse_numbers(layers, static_cast<int64_t>(configs.size()), "--layers"), configs);
  reading.show_to(probe);
  make_folder(out);
  for (const auto& [layer, tensors] : probe.captured()) {
    const auto file = fs::path(out) / fmt::format("layer{}.safetensors", layer);
    write_tensors(file, tensors);
    fmt::print("{}\n", file.string());
  }
  return 0;
}

}  // namespace prism
