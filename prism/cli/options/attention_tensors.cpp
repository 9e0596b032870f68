#include "prism/cli/options/attention_tensors.h"

#include <cmath>
#include <span>
#include <utility>

#include "prism/attention/rotary.h"
#include "prism/checkpoint/tensor_file.h"
#include "prism/core/error.h"

namespace prism {
namespace {

torch::Tensor read_heads(const SafetensorsReader& reader, const char* name, const std::string& operation) {
  auto tensor = read_tensor(reader, name);
  PRISM_CHECK(tensor.dim() == 4 && tensor.numel() > 0, operation,
              "{}: expected q [B, H, T, D], k [B, G, S, D] and v [B, G, S, E]; found {} in {}; reshape it.", name,
              c10::str(tensor.sizes()), reader.path().string());
  PRISM_CHECK(tensor.scalar_type() == torch::kFloat || tensor.scalar_type() == torch::kBFloat16, operation,
              "{}: expected F32 or BF16, which are float32 and bfloat16; found {} in {}; convert it.", name,
              element_type_name(reader.find(name).type), reader.path().string());
  return tensor;
}

void check_finite(const torch::Tensor& tensor, const char* name, const std::string& file,
                  const std::string& operation) {
  const auto harmed = tensor.isfinite().logical_not_().nonzero();
  if (harmed.size(0) == 0) return;
  throw InputError(operation,
                   fmt::format("{}: expected finite values; found {} that are not, the first at {}, in {}; check "
                               "the program that wrote them.",
                               name, harmed.size(0),
                               c10::str(at::IntArrayRef(harmed[0].contiguous().const_data_ptr<int64_t>(), 4)), file));
}

RotaryPairs read_pairs(const SafetensorsReader& reader, int64_t width, const RotaryWords& words,
                       const std::string& operation) {
  const RotaryWords untouched;
  PRISM_CHECK(!words.sections.empty() || (!words.is_interleaved && words.steps == untouched.steps), operation,
              "expected --mrope-sections beside --mrope-interleaved and --mrope-steps; found none; add them.");
  torch::Tensor angles;
  if (reader.contains("inverse_frequencies")) {
    PRISM_CHECK(words.base == untouched.base && words.dims == untouched.dims, operation,
                "expected no --rotary-base or --rotary-dims beside inverse_frequencies of {}; found one; leave it out.",
                reader.path().string());
    angles = read_tensor(reader, "inverse_frequencies").to(torch::kDouble).flatten();
    PRISM_CHECK(
        angles.isfinite().all().item<bool>(), operation,
        "inverse_frequencies: expected finite angles; found NaN or infinity in {}; check the program that wrote them.",
        reader.path().string());
  } else {
    PRISM_CHECK(words.dims >= 0 && words.dims % 2 == 0 && words.dims <= width, operation,
                "--rotary-dims: expected an even number up to the width of a head, {}; found {}; change it.", width,
                words.dims);
    PRISM_CHECK(words.dims > 0 || width % 2 == 0, operation,
                "expected heads of an even width, whose features turn in pairs; found {} in {}; give --rotary-dims {}.",
                width, reader.path().string(), width - 1);
    const int64_t turning = words.dims == 0 ? width : words.dims;
    PRISM_CHECK(words.base > 1 && std::isfinite(words.base), operation,
                "--rotary-base: expected a number above 1; found {}; change it.", words.base);
    angles = rotary_angles({.base = words.base}, turning);
  }
  const std::span<const double> given(angles.const_data_ptr<double>(), static_cast<size_t>(angles.numel()));
  std::vector<double> turned(given.begin(), given.end());
  for (const double step : words.steps)
    PRISM_CHECK(std::isfinite(step), operation, "--mrope-steps: expected finite steps; found {}; change it.", step);
  if (!words.sections.empty()) turned = multi_axis_angles(given, {words.sections, words.is_interleaved}, words.steps);
  PRISM_CHECK(words.layout == "half_split" || words.layout == "interleaved", operation,
              "--rotary: expected half_split or interleaved; found \"{}\"; choose one of these.", words.layout);
  return words.layout == "half_split" ? half_split_pairs(width, turned) : interleaved_pairs(width, turned);
}

}  // namespace

void add_rotary_options(CLI::App& app, RotaryWords& words) {
  app.add_option("--rotary", words.layout, "how features are paired by the rotary encoding: half_split or interleaved")
      ->capture_default_str();
  app.add_option("--rotary-base", words.base, "base of the rotary angles, unless the file has inverse_frequencies")
      ->capture_default_str();
  app.add_option("--rotary-dims", words.dims, "number of features with a rotary encoding, from the first; 0: all")
      ->capture_default_str();
  app.add_option("--mrope-sections", words.sections,
                 "rotary pairs per axis, if positions have several axes, e.g. 24,20,20 for time, height and width")
      ->delimiter(',');
  app.add_flag("--mrope-interleaved", words.is_interleaved,
               "the axes' pairs alternate (Qwen3-VL) instead of standing axis after axis");
  app.add_option("--mrope-steps", words.steps,
                 "how far positions advance along each axis per token: 1,1,1 in text, 0,0,1 in a row of an image")
      ->delimiter(',')
      ->capture_default_str();
}

AttentionTensors read_attention_tensors(const std::string& file, const RotaryWords& words,
                                        const std::string& operation) {
  const SafetensorsReader reader(file);
  const auto q = read_heads(reader, "q", operation), k = read_heads(reader, "k", operation);
  PRISM_CHECK(
      q.size(0) == k.size(0) && q.size(3) == k.size(3) && q.size(1) % k.size(1) == 0 && q.size(2) <= k.size(2),
      operation,
      "expected q [B, H, T, D] and k [B, G, S, D] with H a multiple of G and T at most S; found {} and {} in {}; "
      "reshape one.",
      c10::str(q.sizes()), c10::str(k.sizes()), file);
  const auto v = reader.contains("v") ? read_heads(reader, "v", operation) : torch::Tensor();
  PRISM_CHECK(k.scalar_type() == q.scalar_type() && (!v.defined() || v.scalar_type() == q.scalar_type()), operation,
              "expected q, k and v of one dtype; found {}, {}{} in {}; convert them.",
              element_type_name(reader.find("q").type), element_type_name(reader.find("k").type),
              v.defined() ? fmt::format(" and {}", element_type_name(reader.find("v").type)) : "", file);
  PRISM_CHECK(!v.defined() || v.sizes().slice(0, 3) == k.sizes().slice(0, 3), operation,
              "expected v [B, G, S, E] for k {}; found {} in {}; reshape it.", c10::str(k.sizes()),
              v.defined() ? c10::str(v.sizes()) : "none", file);
  check_finite(q, "q", file, operation);
  check_finite(k, "k", file, operation);
  if (v.defined()) check_finite(v, "v", file, operation);
  return {q.transpose(1, 2), k, v, read_pairs(reader, q.size(3), words, operation)};
}

}  // namespace prism
