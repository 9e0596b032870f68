#include "prism/layers/packed_weight.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>

#include "prism/core/error.h"
#include "prism/kernels/memory/huge_pages.h"
#include "prism/kernels/memory/scratch.h"

namespace prism {
namespace {

using torch::Tensor;

constexpr int64_t kLine = 64;

packed::Type packed_type(torch::ScalarType type) {
  return type == torch::kBFloat16 ? packed::Type::bfloat16 : packed::Type::float32;
}

/// The product with all rows of x, without scratch memory.
packed::Problem problem_of(const packed::Matrix& w, const Tensor& x_MK, const Tensor& out_MN,
                           const ProductOptions& options) {
  packed::Problem p;
  p.w = w;
  p.type = packed_type(x_MK.scalar_type());
  p.out_type = packed_type(out_MN.scalar_type());
  p.rows = x_MK.size(0);
  p.x = x_MK.const_data_ptr();
  p.x_stride = x_MK.size(-1);
  p.out = out_MN.mutable_data_ptr();
  p.out_stride = out_MN.size(-1);
  p.bias = options.bias.defined() ? options.bias.const_data_ptr<float>() : nullptr;
  p.relu = options.relu;
  p.threads = kernel_threads();
  return p;
}

/// Rows [first, end) of a dense tensor [..., K], [end - first, K].
Tensor rows_of(const Tensor& tensor, int64_t first, int64_t end) {
  return tensor.view({-1, tensor.size(-1)}).narrow(0, first, end - first);
}

}  // namespace

PackedWeight::PackedWeight(int64_t in, const std::vector<Part>& parts) : in_(in) {
  for (const auto& [type, rows] : parts) {
    PRISM_ASSERT(packed::can_pack(type) && (type == BlockType::bf16 || in % packed::kBlock == 0), "packed_weight",
                 "rows of {} values in {}", in, block_layout(type).name);
    const bool joins =
        !parts_.empty() && parts_.back().matrix.type == type && parts_.back().matrix.rows % packed::kStripRows == 0;
    if (joins) {
      parts_.back().matrix.rows += rows;
    } else {
      parts_.push_back({out_, {type, rows, in}});
    }
    out_ += rows;
  }
  memory_ = empty_in_huge_pages(bytes() + kLine, torch::kByte);
  memory_.zero_();
  void* data = memory_.mutable_data_ptr();
  size_t space = static_cast<size_t>(memory_.numel());
  auto* at = static_cast<std::byte*>(std::align(kLine, static_cast<size_t>(bytes()), data, space));
  for (auto& part : parts_) {
    part.matrix.data = at;
    at += packed::packed_bytes(part.matrix);
  }
}

std::optional<torch::ScalarType> PackedWeight::prompt_type() {
  const auto* kernels = packed::kernels_of(current_isa());
  if (kernels == nullptr) return std::nullopt;
  return kernels->prompt_type == packed::Type::bfloat16 ? torch::kBFloat16 : torch::kFloat;
}

int64_t PackedWeight::bytes() const {
  int64_t sum = 0;
  for (const auto& part : parts_) sum += packed::packed_bytes(part.matrix);
  return sum;
}

std::span<const std::byte> PackedWeight::data() const {
  if (parts_.empty()) return {};
  return {static_cast<const std::byte*>(parts_.front().matrix.data), static_cast<size_t>(bytes())};
}

std::vector<PackedWeight::Part> PackedWeight::parts() const {
  std::vector<Part> parts;
  for (const auto& part : parts_) parts.push_back({part.matrix.type, part.matrix.rows});
  return parts;
}

const PackedWeight::Stored& PackedWeight::part_of(int64_t row) const {
  PRISM_ASSERT(row >= 0 && row < out_, "packed_weight", "row {} of {}", row, out_);
  return *std::prev(std::upper_bound(parts_.begin(), parts_.end(), row,
                                     [](int64_t r, const Stored& part) { return r < part.first; }));
}

void PackedWeight::set_blocks(int64_t first, const torch::Tensor& bytes_given) {
  if (bytes_given.size(0) == 0) return;
  const auto bytes = bytes_given.contiguous();
  const auto& part = part_of(first);
  const BlockLayout& block = block_layout(part.matrix.type);
  const int64_t rows = bytes.size(0), row_bytes = bytes.size(1), skipped = first - part.first;
  PRISM_ASSERT(skipped + rows <= part.matrix.rows && row_bytes == in_ / block.elements * block.bytes, "packed_weight",
               "{} rows of {} bytes from row {} on", rows, row_bytes, first);
  const auto* data = static_cast<const std::byte*>(bytes.const_data_ptr());
  // Rows of one strip share bytes, so a thread takes whole strips.
  const int64_t first_strip = skipped / packed::kStripRows, end_strip = (skipped + rows - 1) / packed::kStripRows + 1;
  at::parallel_for(first_strip, end_strip, 4, [&](int64_t from, int64_t to) {
    const int64_t end = std::min(to * packed::kStripRows, skipped + rows);
    for (int64_t row = std::max(from * packed::kStripRows, skipped); row < end; ++row)
      packed::pack_row(part.matrix, row, data + (row - skipped) * row_bytes);
  });
}

void PackedWeight::set_rows(int64_t first, const torch::Tensor& values) {
  const auto halves = values.detach().to(torch::kBFloat16).contiguous();
  set_blocks(first, halves.view(torch::kByte));
}

void PackedWeight::multiply(const Tensor& x_MK, const Tensor& out_MN, int64_t first, int64_t end, bool decodes,
                            const ProductOptions& options) const {
  if (first == end) return;
  const auto* kernels = packed::kernels_of(current_isa());
  if (kernels == nullptr) return multiply_plainly(rows_of(x_MK, first, end), rows_of(out_MN, first, end), options);
  // Prompts are multiplied in one dtype only.
  const auto type = decodes ? x_MK.scalar_type() : *prompt_type();
  if (x_MK.scalar_type() != type) {
    const auto out =
        out_MN.scalar_type() == torch::kFloat ? rows_of(out_MN, first, end) : at::empty({end - first, out_}, type);
    multiply(rows_of(x_MK, first, end).to(type), out, 0, end - first, decodes, options);
    if (out.scalar_type() != out_MN.scalar_type()) rows_of(out_MN, first, end).copy_(out);
    return;
  }
  const auto x_bytes = static_cast<int64_t>(x_MK.element_size()), y_bytes = static_cast<int64_t>(out_MN.element_size());
  for (const auto& part : parts_) {
    auto p = problem_of(part.matrix, x_MK, out_MN, options);
    p.rows = end - first;
    p.x = static_cast<const std::byte*>(p.x) + first * in_ * x_bytes;
    p.out = static_cast<std::byte*>(p.out) + (first * out_ + part.first) * y_bytes;
    if (p.bias != nullptr) p.bias += part.first;
    Scratch scratch((decodes ? kernels->decoding_scratch : kernels->prompt_scratch)(p));
    p.scratch = scratch.data();
    (decodes ? kernels->multiply_decoding : kernels->multiply_prompt)(p);
  }
}

void PackedWeight::product_into(const Tensor& out, const Tensor& x, const ProductOptions& options) const {
  PRISM_ASSERT(x.size(1) == in_ && out.size(1) == out_ && x.is_contiguous() && out.is_contiguous(), "packed_weight",
               "x or the result is not dense, or of another width");
  multiply(x, out, 0, x.size(0), /*decodes=*/false, options);
}

void PackedWeight::product_of_columns(const Tensor& out, const Tensor& x, std::span<const int64_t> blocks,
                                      int64_t width, const ProductOptions& options) const {
  const auto& whole = parts_.front().matrix;
  PRISM_ASSERT(parts_.size() == 1 && whole.type == BlockType::bf16 && width % 2 == 0 && x.is_contiguous() &&
                   out.is_contiguous() && x.scalar_type() == torch::kBFloat16 && prompt_type() == torch::kBFloat16 &&
                   x.size(1) == std::ssize(blocks) * width && out.size(1) == out_,
               "packed_weight", "columns of another weight, or x or the result of another kind");
  packed::Matrix chosen{BlockType::bf16, out_, x.size(1)};
  Scratch memory(static_cast<size_t>(packed::packed_bytes(chosen)));
  chosen.data = memory.data();
  // A strip holds its rows' values of a pair of columns together, and so those of a block.
  const int64_t block_bytes = width * packed::kStripRows * 2;
  const auto from_bytes = packed::StripLayout(whole.type, whole.blocks()).bytes,
             to_bytes = packed::StripLayout(chosen.type, chosen.blocks()).bytes;
  for (int64_t strip = 0; strip < whole.strips(); ++strip) {
    const std::byte* from = whole.data + strip * from_bytes;
    std::byte* to = chosen.data + strip * to_bytes;
    for (const int64_t block : blocks) to = std::copy_n(from + block * block_bytes, block_bytes, to);
    std::fill(to, chosen.data + (strip + 1) * to_bytes, std::byte{0});
  }
  const auto* kernels = packed::kernels_of(current_isa());
  auto p = problem_of(chosen, x, out, options);
  Scratch scratch(kernels->prompt_scratch(p));
  p.scratch = scratch.data();
  kernels->multiply_prompt(p);
}

void PackedWeight::multiply_plainly(const Tensor& x_MK, const Tensor& out_MN, const ProductOptions& options) const {
  constexpr int64_t kRows = 1024;  // unpacked at a time
  for (int64_t first = 0; first < out_; first += kRows) {
    const int64_t count = std::min(kRows, out_ - first);
    auto y = at::linear(x_MK.to(torch::kFloat), rows(at::arange(first, first + count)));
    if (options.bias.defined()) y.add_(options.bias.narrow(0, first, count));
    if (options.relu) y.relu_();
    out_MN.narrow(1, first, count).copy_(y);
  }
}

Tensor PackedWeight::product(const Tensor& given, const ProductOptions& options) const {
  RECORD_FUNCTION("prism::packed_product", {});
  PRISM_ASSERT(given.size(-1) == in_, "packed_weight", "rows of {} instead of {}", given.size(-1), in_);
  PRISM_CHECK(!(at::GradMode::is_enabled() && given.requires_grad()), "model",
              "expected no gradients of a model whose weights are frozen; found some asked for; give "
              "--weights float32.");
  const auto x = given.contiguous();
  auto sizes = x.sizes().vec();
  sizes.back() = out_;
  auto y = at::empty(sizes, options.single ? x.options().dtype(torch::kFloat) : x.options());
  const int64_t rows = x.numel() / in_, decoding = std::min(options.decoding, rows);
  multiply(x, y, 0, decoding, /*decodes=*/true, options);
  multiply(x, y, decoding, rows, /*decodes=*/false, options);
  return y;
}

Tensor PackedWeight::rows(const Tensor& ids) const {
  auto sizes = ids.sizes().vec();
  sizes.push_back(in_);
  auto values = at::empty(sizes, torch::kFloat);
  const auto flat = ids.contiguous();
  const auto* id = flat.const_data_ptr<int64_t>();
  auto* to = values.mutable_data_ptr<float>();
  at::parallel_for(0, flat.numel(), 16, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
      const auto& part = part_of(id[i]);
      packed::unpack_row(part.matrix, id[i] - part.first, to + i * in_);
    }
  });
  return values;
}

}  // namespace prism
