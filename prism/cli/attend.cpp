// prism attend: block-sparse attention on queries, keys and values from a file, which any language can write.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "prism/checkpoint/mask_file.h"
#include "prism/checkpoint/tensor_file.h"
#include "prism/cli/command.h"
#include "prism/cli/options/attention_tensors.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/prefill_options.h"
#include "prism/core/console.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/statistics.h"
#include "prism/core/timer.h"
#include "prism/kernels/attention/attend.h"
#include "prism/report/draw/gnuplot.h"
#include "prism/report/draw/grid_plot.h"
#include "prism/report/draw/plot_file.h"
#include "prism/sparse/mask_statistics.h"
#include "prism/sparse/selectors.h"

namespace prism {
namespace {

struct AttendWords {
  std::string file, output, mask, save_mask, picture, selector = "spectral";
  std::vector<std::string> sets;
  std::vector<int64_t> mask_blocks;
  RotaryWords rotary;
  int64_t picture_head = 0;
  double skip_share = 0;
  int threads = 0;
  bool recall = false, json = false;
};

std::string selectors_text() {
  std::string text =
      "Selectors and their settings [defaults], for --set NAME=VALUE. A row is a block of queries, that is, a row of "
      "the\n"
      "mask. Presets named paper use the settings of arXiv 2602.08426.\n";
  for (const auto& name : selector_names()) {
    text += fmt::format("  {}: {}\n", name, selector_help(name));
    for (const auto& row : selector_fields(name))
      text += fmt::format("    {:<14} {} [{}]\n", row.path, row.help, row.default_value);
  }
  return text;
}

void print(const Json& row, bool json) {
  if (json) {
    fmt::print("{}\n", to_text(row));
    return;
  }
  const std::function<std::string(const Json&)> text = [&](const Json& value) {
    if (value.is_object()) {
      std::string fields;
      for (const auto& [name, field] : value.items()) fields += (fields.empty() ? "" : ", ") + name + "=" + text(field);
      return fields;
    }
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

/// The end of the help: selectors, what they see, files of masks, statistics, examples.
std::string attend_notes() {
  return selectors_text() + R"(
Attention is always causal: a query never reads later keys. The choice of key blocks may depend on later
tokens all the same, because the queries of a block (a row of the mask) share one choice. Later tokens that
the choice depends on:
  spectral, mean_pooling       the rest of the row's own block, since they use means over whole blocks;
                               spectral with calibration=all_blocks: the whole prompt
  auto                         as spectral, and the rows that it tries first, up to four of each head
  xattention, flash_prefill,   the other queries of the row
  oracle
  vertical_slash,              the last queries of the prompt, or of its chunk, which choose for all rows
  flex_prefill
  the others                   none
With last_dense above 0 (the default of spectral, auto and flash_prefill), the end of the prompt decides which
rows keep every block.

The FILE of --mask holds either a tensor
  mask          uint8 [B, H, M, N]: 1 for each key block that is kept (sizes of blocks: --mask-blocks);
or the lists that --save-mask writes:
  counts        int32 [B, H, M]: number of kept key blocks of each row
  indices       int32 [B, H, M, K]: kept key blocks in ascending order; entries beyond the count are ignored
  block_sizes   int64 [2]: tokens per query block and per key block
If a row keeps no block, its out is 0 and its lse -inf.

Statistics, over all heads and per head:
  density               kept blocks as a share of those that some query of their row may attend to
  recall                with --recall: mean share of a query's exact attention that is in the kept blocks
  recall_p5             its 5th percentile
  least_recall          its minimum
  oracle_density        with --recall: density of the fewest blocks with the same recall
  unrounded_density     vertical_slash: share of the query-key pairs in the chosen columns and diagonals, before
                        rounding up to blocks
  select_ms, attend_ms  milliseconds to choose the blocks (with --mask: to read it) and to attend
  backend               flash; or, for head widths that it does not support, torch or reference, which also
                        compute the blocks that are not kept

  prism attend layer12.safetensors --set p=0.9 --output sparse.safetensors --picture sparse.svg
  prism attend layer12.safetensors --selector xattention --set stride=16 --recall --json
  prism attend layer12.safetensors --mask mine.safetensors --mask-blocks 64,64 --output mine_out.safetensors)";
}

void add_options(CLI::App& app, AttendWords& words) {
  app.add_option("FILE", words.file, "safetensors file with q, k and v")->required();
  auto* selector = app.add_option("--selector", words.selector, "method that chooses the key blocks, see below");
  selector->capture_default_str();
  auto* set =
      app.add_option("--set", words.sets, "NAME=VALUE: change a setting of the selector, see below; may be repeated");
  set->allow_extra_args(false);
  auto* mask =
      app.add_option("--mask", words.mask, "read the mask from this file, see below, instead of using a selector");
  mask->type_name("FILE")->excludes(selector, set);
  app.add_option("--mask-blocks", words.mask_blocks,
                 "tokens per query block and per key block of --mask, each 32, 64, 128 or 256")
      ->default_str("128,128")
      ->needs(mask)
      ->delimiter(',')
      ->expected(2)
      ->type_name("QUERIES,KEYS")
      ->check(CLI::IsMember(std::set<int64_t>{32, 64, 128, 256}).description(""));
  app.add_option("--skip-share", words.skip_share,
                 "within kept blocks, skip tiles of keys whose attention weights are all below this share of the "
                 "largest so far; 0: skip none")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--output", words.output, "write mask, out and lse to this file; default: write nothing")
      ->type_name("OUT.safetensors");
  app.add_option("--save-mask", words.save_mask,
                 "write the mask to this file as lists of kept blocks, which take less room than a mask")
      ->type_name("OUT.safetensors");
  auto* picture = app.add_option("--picture", words.picture, "draw the mask of one head into this file");
  picture->type_name("OUT.svg");
  app.add_option("--picture-head", words.picture_head, "head of --picture, of the first sequence, counted from 0")
      ->needs(picture)
      ->capture_default_str();
  add_rotary_options(app, words.rotary);
  app.add_flag("--recall", words.recall,
               "also measure the share of exact attention that is kept; as slow as exact attention");
  add_threads_option(app, words.threads);
  app.add_flag("--json", words.json, "print one JSON object");
  app.footer(attend_notes());
}

/// Reads --mask and drops blocks that no query sees.
BlockMask read_mask(const AttendWords& words, const SelectorInput& input) {
  std::optional<BlockSizes> sizes;
  if (!words.mask_blocks.empty())
    sizes = BlockSizes{.query_block = words.mask_blocks[0], .key_block = words.mask_blocks[1]};
  const auto given = load_block_mask(words.mask, input.k_BGSD.size(2), sizes);
  return make_block_mask(kept_blocks(input, given), given.query_block_size, given.key_block_size);
}

/// Density, recall and times, over all heads and per head. @param unrounded  as Selector::unrounded_densities().
Json statistics(const AttendWords& words, const Json& settings, const SelectorInput& input, const BlockMask& mask,
                const std::vector<double>& unrounded, double select_ms, double attend_ms, const char* backend) {
  const auto heads = measure_mask(input, mask, words.recall ? kAllRows : 0);
  Json row = {{"selector", words.mask.empty() ? words.selector : words.mask}};
  if (words.mask.empty()) row["settings"] = settings;
  row.update({{"tokens", input.q_BTHD.size(1)}, {"keys", input.k_BGSD.size(2)}});
  row.update(statistics_to_json(sum_of(heads)));
  row["select_ms"] = select_ms;
  row["attend_ms"] = attend_ms;
  row["backend"] = backend;
  row["heads"] = Json::array();
  for (const auto& head : heads) row["heads"].push_back(statistics_to_json(head));
  if (!unrounded.empty()) row["unrounded_density"] = statistic(unrounded).mean;
  for (size_t h = 0; h < unrounded.size(); ++h) row["heads"][h]["unrounded_density"] = unrounded[h];
  return row;
}

/// Draws one head's kept blocks among those that its queries see.
std::string picture_of(const AttendWords& words, const SelectorInput& input, const BlockMask& mask) {
  const auto kept = kept_blocks(input, mask)[0][words.picture_head].to(torch::kDouble).contiguous();
  const auto visible = visible_blocks(input, mask.query_block_size, mask.key_block_size)[0][words.picture_head];
  const auto shares = torch::where(visible, kept, kNoShare).contiguous();
  const double* first = shares.const_data_ptr<double>();
  const auto blocks = SelectorLengths(input).blocks(0, mask.query_block_size, mask.key_block_size);
  const ShadeGrid grid{.rows = shares.size(0),
                       .columns = shares.size(1),
                       .shares = {first, first + shares.numel()},
                       .first_row = static_cast<double>(blocks.first_row() * mask.query_block_size),
                       .row_step = static_cast<double>(mask.query_block_size),
                       .column_step = static_cast<double>(mask.key_block_size),
                       .row_label = "query, tokens",
                       .column_label = "key, tokens"};
  const std::string name = words.mask.empty() ? words.selector : words.mask;
  return plot_file(grid_plot("mask", fmt::format("Key blocks that {} keeps, head {}", name, words.picture_head), grid),
                   {}, "gnuplot");
}

void write_files(const AttendWords& words, const SelectorInput& input, const BlockMask& mask,
                 const AttentionOutput& found) {
  const auto kept = kept_blocks(input, mask);
  if (!words.output.empty())
    write_tensors(words.output,
                  {{"mask", kept.to(torch::kByte)}, {"out", found.out_BTHE.transpose(1, 2)}, {"lse", found.lse_BHT}});
  if (!words.save_mask.empty())
    save_block_mask(words.save_mask,
                    mask.defined() ? mask : make_block_mask(kept, mask.query_block_size, mask.key_block_size));
  if (!words.picture.empty()) write_file(words.picture, picture_of(words, input, mask));
}

}  // namespace

int run_attend(const Arguments& arguments) {
  AttendWords words;
  CLI::App app(
      "Compute attention on tensors from a file, but only over the blocks of keys that a selector chooses for each "
      "block\nof queries. Print the share of blocks that is kept, and with --recall the share of the exact attention "
      "that they hold.\nThis shows which blocks a method keeps and what is lost without them.\n\n"
      "FILE holds q [B, H, T, D], k [B, G, S, D] and v [B, G, S, E] as float32 or bfloat16, with q and k after the "
      "rotary\nencoding: B sequences, H query heads, G key/value heads, S keys, T queries, which are the last T of the "
      "S positions,\nand head widths D and E. It may also hold inverse_frequencies [R / 2] of the R rotary features. "
      "The file of --output\nholds mask, uint8 [B, H, M, N] with M query blocks and N key blocks, out [B, H, T, E] "
      "and lse [B, H, T],\nthe log of the sum of the exponentials of a query's scores.",
      "prism attend");
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  const Json settings = settings_from_sets(words.selector, words.sets, "attend", "--set");
  find_selector(words.selector, settings);  // reports wrong settings before anything is read
  check_outputs("attend", {words.file, words.mask}, {words.output, words.save_mask, words.picture});
  if (!words.picture.empty()) check_gnuplot("gnuplot");
  start_compute(words.threads);
  const torch::NoGradGuard no_gradients;
  const auto tensors = read_attention_tensors(words.file, words.rotary, "attend");
  PRISM_CHECK(tensors.v_BGSE.defined(), "attend", "expected q, k and v in {}; found no v; add it.", words.file);
  PRISM_CHECK(words.picture_head >= 0 && words.picture_head < tensors.q_BTHD.size(2), "attend",
              "--picture-head: expected a head from 0 to {}; found {}; change it.", tensors.q_BTHD.size(2) - 1,
              words.picture_head);
  const SelectorInput input{tensors.q_BTHD, tensors.k_BGSD, {}, {}, tensors.pairs, 0};
  std::vector<PrefillShape> shapes;
  if (words.mask.empty() && input.pairs.size() > 0)
    if (const auto shape = cost_shape(words.selector, settings, input.q_BTHD.scalar_type(), input.q_BTHD.size(3)))
      shapes.push_back(*shape);
  const auto selector = find_selector(words.selector, settings, costs_on_this_machine(shapes));
  const auto state = words.mask.empty() ? selector->make_state(input) : nullptr;
  Timer timer;
  const auto mask = state == nullptr ? read_mask(words, input) : selector->select(input, *state);
  const double select_ms = 1e3 * timer.seconds();
  timer.restart();
  AttentionInput attention;
  attention.q_BTHD = tensors.q_BTHD;
  attention.kv = {tensors.k_BGSD, tensors.v_BGSE, {}};
  attention.block_mask = mask;
  attention.skip_share = words.skip_share;
  const auto found = attend(attention);
  const double attend_ms = 1e3 * timer.seconds();
  PRISM_CHECK(found.out_BTHE.isfinite().all().item<bool>(), "attend",
              "expected finite scores and outputs in float32; found NaN or infinity for the tensors of {}; "
              "scale them down.",
              words.file);
  write_files(words, input, mask, found);
  const auto unrounded = words.mask.empty() ? selector->unrounded_densities(input) : std::vector<double>();
  print(statistics(words, settings, input, mask, unrounded, select_ms, attend_ms,
                   backend_name(choose_backend(attention))),
        words.json);
  say_notes(selector->notes());
  return 0;
}

}  // namespace prism
