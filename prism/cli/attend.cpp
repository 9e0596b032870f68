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
#include "prism/sparse/exact_mass.h"
#include "prism/sparse/selectors.h"

namespace prism {
namespace {

constexpr const char* kOperation = "attend";

struct Words {
  std::string file, output, selector = "spectral", layout = "half_split";
  std::vector<std::string> sets;
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
  const std::span<const double> view(angles.const_data_ptr<double>(), static_cast<size_t>(angles.numel()));
  PRISM_CHECK(words.layout == "half_split" || words.layout == "interleaved", kOperation,
              "--rotary: expected half_split or interleaved; found \"{}\"; choose one of these.", words.layout);
  found.pairs = words.layout == "half_split" ? half_split_pairs(width, view) : interleaved_pairs(width, view);
  return found;
}

/// Blocks that some query sees.
int64_t visible_blocks(const HeadInput& head) {
  int64_t sum = 0;
  for (int64_t row = 0; row < head.rows(); ++row) sum += head.visible(row);
  return sum;
}

HeadInput head_of(const Tensors& t, const BlockMask& mask, int64_t b, int64_t h) {
  const int64_t group = h * t.k_BGSD.size(1) / t.q_BTHD.size(2);
  return {t.q_BTHD[b].select(1, h).to(torch::kFloat), t.k_BGSD[b][group].to(torch::kFloat), mask.query_block_size,
          mask.key_block_size, 1 / std::sqrt(static_cast<double>(t.q_BTHD.size(3)))};
}

/// Mean and least share of a query's exact attention that is kept, over all heads.
std::pair<double, double> recall_of(const Tensors& t, const BlockMask& mask, const torch::Tensor& kept_BHMN) {
  double sum = 0, least = 1;
  const int64_t batch = t.q_BTHD.size(0), heads = t.q_BTHD.size(2);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const auto shares = recall(head_of(t, mask, b, h), kept_BHMN[b][h]);
      sum += shares.mean().item<double>();
      least = std::min(least, shares.min().item<double>());
    }
  return {sum / static_cast<double>(batch * heads), least};
}

void print(const Json& row, bool json) {
  if (json) {
    fmt::print("{}\n", to_text(row));
    return;
  }
  for (const auto& [name, value] : row.items())
    fmt::print("{:<14} {}\n", name,
               value.is_number_float() ? fmt::format("{:.4g}", value.get<double>())
               : value.is_string()     ? value.get<std::string>()
                                       : value.dump());
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
  const HeadInput head = head_of(tensors, mask, 0, 0);
  const auto kept_BHMN = kept_blocks(mask, head.blocks());
  Json row = {{"selector", words.selector},
              {"tokens", head.queries()},
              {"keys", head.keys()},
              {"density", density(mask, visible_blocks(head) * kept_BHMN.size(0) * kept_BHMN.size(1))},
              {"select_ms", select_ms},
              {"attend_ms", attend_ms}};
  if (words.recall) {
    const auto [mean, least] = recall_of(tensors, mask, kept_BHMN);
    row["recall"] = mean;
    row["least_recall"] = least;
  }
  if (!words.output.empty())
    write_tensors(
        words.output,
        {{"mask", kept_BHMN.to(torch::kByte)}, {"out", found.out_BTHE.transpose(1, 2)}, {"lse", found.lse_BHT}});
  print(row, words.json);
  return 0;
}

}  // namespace prism
