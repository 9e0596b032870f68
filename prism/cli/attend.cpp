// prism attend: block-sparse attention over the queries, keys and values of a file, from any language.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "prism/attention/rotary.h"
#include "prism/checkpoint/tensor_file.h"
#include "prism/cli/command.h"
#include "prism/cli/compute_options.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/timer.h"
#include "prism/kernels/attend.h"
#include "prism/sparse/mask_statistics.h"
#include "prism/sparse/selectors.h"

namespace prism {
namespace {

constexpr const char* kOperation = "attend";

struct Words {
  std::string file, output, selector = "spectral", layout = "half_split";
  std::vector<std::string> sets;
  std::vector<int64_t> sections;
  std::vector<double> steps = {1, 1, 1};
  bool sections_interleaved = false;
  double base = 10000;
  int64_t rotary_dims = 0;
  int threads = 0;
  bool recall = false, json = false;
};

std::string selectors_text() {
  std::string text = "Selectors and their settings (--set NAME=VALUE):\n";
  for (const auto& name : selector_names()) {
    text += fmt::format("  {}: {}\n", name, selector_help(name));
    for (const auto& row : selector_fields(name))
      text += fmt::format("    {:<14} {} [{}]\n", row.path, row.help, row.default_value);
  }
  return text;
}

/// Queries, keys and values as attend() takes them.
struct Tensors {
  torch::Tensor q_BTHD, k_BGSD, v_BGSE;
  RotaryPairs pairs;
};

Tensors read(const Words& words) {
  const SafetensorsReader reader(words.file);
  Tensors found{read_tensor(reader, "q"), read_tensor(reader, "k"), read_tensor(reader, "v"), {}};
  for (const auto& [name, tensor] : {std::pair{"q", found.q_BTHD}, {"k", found.k_BGSD}, {"v", found.v_BGSE}}) {
    PRISM_CHECK(tensor.dim() == 4 && tensor.numel() > 0, kOperation,
                "{}: expected q [B, H, T, D], k [B, G, S, D] and v [B, G, S, E]; found {} in {}; reshape it.", name,
                c10::str(tensor.sizes()), words.file);
    PRISM_CHECK(tensor.scalar_type() == torch::kFloat || tensor.scalar_type() == torch::kBFloat16, kOperation,
                "{}: expected float32 or bfloat16; found {} in {}; convert it.", name, tensor.dtype().name(),
                words.file);
  }
  found.q_BTHD = found.q_BTHD.transpose(1, 2);
  const int64_t width = found.q_BTHD.size(3), turning = words.rotary_dims == 0 ? width : words.rotary_dims;
  torch::Tensor angles;
  if (reader.contains("inverse_frequencies")) {
    angles = read_tensor(reader, "inverse_frequencies").to(torch::kDouble).flatten();
  } else {
    PRISM_CHECK(turning > 0 && turning % 2 == 0 && turning <= width, kOperation,
                "--rotary-dims: expected an even number up to the width of a head, {}; found {}; change it.", width,
                turning);
    angles = rotary_angles({.base = words.base}, turning);
  }
  const std::span<const double> given(angles.const_data_ptr<double>(), static_cast<size_t>(angles.numel()));
  std::vector<double> turned(given.begin(), given.end());
  if (!words.sections.empty())
    turned = multi_axis_angles(given, {words.sections, words.sections_interleaved}, words.steps);
  PRISM_CHECK(words.layout == "half_split" || words.layout == "interleaved", kOperation,
              "--rotary: expected half_split or interleaved; found \"{}\"; choose one of these.", words.layout);
  found.pairs = words.layout == "half_split" ? half_split_pairs(width, turned) : interleaved_pairs(width, turned);
  return found;
}

void print(const Json& row, bool json) {
  if (json) {
    fmt::print("{}\n", to_text(row));
    return;
  }
  const auto text = [](const Json& value) {
    if (value.is_number_float()) return fmt::format("{:.4g}", value.get<double>());
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  for (const auto& [name, value] : row.items())
    if (!value.is_array()) fmt::print("{:<14} {}\n", name, text(value));
  int64_t h = 0;
  for (const auto& head : row["heads"]) {
    fmt::print("{:<14}", fmt::format("head {}", h++));
    for (const auto& [name, value] : head.items()) fmt::print(" {} {}", name, text(value));
    fmt::print("\n");
  }
}

}  // namespace

int run_attend(const Arguments& arguments) {
  Words words;
  CLI::App app(
      "Attends over the key blocks that a selector keeps: causal, queries at the end of the keys.\n\nFILE holds q "
      "[B, H, T, D], k [B, G, S, D] and v [B, G, S, E] as float32 or bfloat16, queries and keys after the rotary\n"
      "encoding, and may hold inverse_frequencies [R / 2]. The output holds mask, uint8 [B, H, query blocks, key "
      "blocks],\nout [B, H, T, E] and lse [B, H, T].",
      "prism attend");
  app.add_option("FILE", words.file, "a safetensors file")->required();
  app.add_option("--selector", words.selector, "the method that chooses the blocks")->capture_default_str();
  app.add_option("--set", words.sets, "NAME=VALUE: one of the selector's settings, see below")->allow_extra_args(false);
  app.add_option("--output", words.output, "where mask, out and lse go; nothing is written without")
      ->type_name("OUT.safetensors");
  app.add_option("--rotary", words.layout, "which features turn together: half_split or interleaved")
      ->capture_default_str();
  app.add_option("--rotary-base", words.base, "of the angles, for bands=auto, unless the file has them")
      ->capture_default_str();
  app.add_option("--rotary-dims", words.rotary_dims, "features that turn, the first ones; 0: all")
      ->capture_default_str();
  app.add_option("--mrope-sections", words.sections,
                 "pairs of each axis where positions have several, e.g. 24,20,20 for time, height and width")
      ->delimiter(',');
  app.add_flag("--mrope-interleaved", words.sections_interleaved, "axes take turns (Qwen3-VL) instead of following");
  app.add_option("--mrope-steps", words.steps,
                 "how far positions go along each axis from token to token: 1,1,1 in text, 0,0,1 in a row of an image")
      ->delimiter(',')
      ->capture_default_str();
  app.add_flag("--recall", words.recall, "also measure what share of the exact attention is kept, as slow as that");
  add_threads_option(app, words.threads);
  app.add_flag("--json", words.json, "one JSON object");
  app.footer(selectors_text() +
             "\n  prism attend layer12.safetensors --set p=0.9 --output sparse.safetensors\n"
             "  prism attend layer12.safetensors --selector xattention --set stride=16 --recall --json");
  if (!parse(app, arguments)) return 0;
  const auto selector =
      find_selector(words.selector, selector_settings(words.selector, overrides_from_sets(words.sets, kOperation)));
  start_compute(words.threads);
  const torch::NoGradGuard no_gradients;
  const auto tensors = read(words);
  Timer timer;
  const SelectorInput input{tensors.q_BTHD, tensors.k_BGSD, {}, {}, tensors.pairs, 0};
  const auto mask = selector->select(input, *selector->make_state(input));
  const double select_ms = 1e3 * timer.seconds();
  timer.restart();
  AttentionInput attention;
  attention.q_BTHD = tensors.q_BTHD;
  attention.kv = {tensors.k_BGSD, tensors.v_BGSE, {}};
  attention.block_mask = mask;
  const auto found = attend(attention);
  const double attend_ms = 1e3 * timer.seconds();
  const auto heads = measure_mask(input, mask, words.recall ? kAllRows : 0);
  HeadStatistics all;
  for (const auto& head : heads) all += head;
  Json row = {{"selector", words.selector}, {"tokens", input.q_BTHD.size(1)}, {"keys", input.k_BGSD.size(2)},
              {"density", all.density()},   {"select_ms", select_ms},         {"attend_ms", attend_ms}};
  if (words.recall) {
    row["recall"] = all.recall();
    row["least_recall"] = all.least_recall;
  }
  row["heads"] = Json::array();
  for (const auto& head : heads) {
    row["heads"].push_back({{"density", head.density()}});
    if (words.recall) row["heads"].back().update({{"recall", head.recall()}, {"least_recall", head.least_recall}});
  }
  if (!words.output.empty())
    write_tensors(words.output, {{"mask", kept_blocks(input, mask).to(torch::kByte)},
                                 {"out", found.out_BTHE.transpose(1, 2)},
                                 {"lse", found.lse_BHT}});
  print(row, words.json);
  return 0;
}

}  // namespace prism
