// prism analyse capture: writes queries, keys, values and residual stream of layers to safetensors files.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "prism/checkpoint/tensor_file.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/reading.h"
#include "prism/core/files.h"
#include "prism/kernels/rotary_pairs.h"

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

/// Copies the tensors of the chosen layers.
class CaptureProbe : public Probe {
 public:
  CaptureProbe(std::vector<int64_t> layers, const std::vector<LayerConfig>& configs)
      : layers_(std::move(layers)), configs_(configs) {}

  void observe_residual(size_t layer, const torch::Tensor& stream_BTD) override {
    if (wants(layer)) files[layer].push_back({"residual", stream_BTD.cpu().contiguous()});
  }
  void observe_attention(size_t layer, const AttentionInput& input) override {
    if (!wants(layer)) return;
    auto& tensors = files[layer];
    tensors.push_back({"q", input.q_BTHD.transpose(1, 2).cpu().contiguous()});
    tensors.push_back({"k", input.kv.k_BGSD.cpu().contiguous()});
    tensors.push_back({"v", input.kv.v_BGSE.cpu().contiguous()});
    // A file without inverse_frequencies would be read as one of plain rotary heads.
    const auto& config = configs_[layer];
    const auto angles =
        config.rotary.turns() ? rotary_pairs(config.rotary, config.head_dim).angles : std::vector<double>();
    tensors.push_back({"inverse_frequencies", torch::tensor(angles, torch::kDouble)});
  }

  std::map<size_t, std::vector<NamedTensor>> files;

 private:
  bool wants(size_t layer) const {
    return std::find(layers_.begin(), layers_.end(), static_cast<int64_t>(layer)) != layers_.end();
  }

  std::vector<int64_t> layers_;
  std::vector<LayerConfig> configs_;
};

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
  for (const auto& [layer, tensors] : probe.files) {
    const auto file = fs::path(out) / fmt::format("layer{}.safetensors", layer);
    write_tensors(file, tensors);
    fmt::print("{}\n", file.string());
  }
  return 0;
}

}  // namespace prism
