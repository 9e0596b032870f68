#include "prism/layers/packed_weight.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>

#include "prism/core/error.h"
#include "prism/kernels/huge_pages.h"
#include "prism/kernels/scratch.h"

namespace prism {
namespace {

constexpr int64_t kLine = 64;

packed::Type packed_type(const torch::Tensor& tensor) {
  return tensor.scalar_type() == torch::kBFloat16 ? packed::Type::bfloat16 : packed::Type::float32;
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

void PackedWeight::multiply(const torch::Tensor& x_MK, const torch::Tensor& out_MN, int64_t first, int64_t end,
                            bool decodes, const ProductOptions& options) const {
  if (first == end) return;
  const auto* kernels = packed::kernels_of(current_isa());
  const auto given = x_MK.narrow(0, first, end - first), wanted = out_MN.narrow(0, first, end - first);
  if (kernels == nullptr) return multiply_plainly(given, wanted, options);
  // Prompts are multiplied in one dtype only.
  const auto type = decodes ? given.scalar_type() : *prompt_type();
  const auto x = given.to(type);
  const bool fits = decodes || wanted.scalar_type() == torch::kFloat || wanted.scalar_type() == type;
  const auto out = fits ? wanted : at::empty(wanted.sizes(), x.options());
  for (const auto& part : parts_) {
    packed::Problem p;
    p.w = part.matrix;
    p.type = packed_type(x);
    p.out_type = packed_type(out);
    p.rows = x.size(0);
    p.x = x.const_data_ptr();
    p.x_stride = x.stride(0);
    p.out = static_cast<std::byte*>(out.mutable_data_ptr()) + part.first * out.element_size();
    p.out_stride = out.stride(0);
    p.bias = options.bias.defined() ? options.bias.const_data_ptr<float>() + part.first : nullptr;
    p.relu = options.relu;
    p.threads = kernel_threads();
    const auto [scratch, owner] = make_scratch((decodes ? kernels->decoding_scratch : kernels->prompt_scratch)(p));
    p.scratch = scratch;
    (decodes ? kernels->multiply_decoding : kernels->multiply_prompt)(p);
  }
  if (!fits) wanted.copy_(out);
}

void PackedWeight::multiply_plainly(const torch::Tensor& x_MK, const torch::Tensor& out_MN,
                                    const ProductOptions& options) const {
  constexpr int64_t kRows = 1024;  // unpacked at a time
  for (int64_t first = 0; first < out_; first += kRows) {
    const int64_t count = std::min(kRows, out_ - first);
    auto y = at::linear(x_MK.to(torch::kFloat), rows(at::arange(first, first + count)));
    if (options.bias.defined()) y.add_(options.bias.narrow(0, first, count));
    if (options.relu) y.relu_();
    out_MN.narrow(1, first, count).copy_(y);
  }
}

torch::Tensor PackedWeight::product(const torch::Tensor& x, const ProductOptions& options) const {
  RECORD_FUNCTION("prism::packed_product", {});
  PRISM_ASSERT(x.size(-1) == in_ && !(at::GradMode::is_enabled() && x.requires_grad()), "packed_weight",
               "rows of another length, or gradients");
  auto sizes = x.sizes().vec();
  sizes.back() = out_;
  auto y = at::empty(sizes, options.single ? x.options().dtype(torch::kFloat) : x.options());
  const auto x_MK = x.reshape({-1, in_}), y_MN = y.view({-1, out_});
  const int64_t decoding = std::min(options.decoding, x_MK.size(0));
  multiply(x_MK, y_MN, 0, decoding, /*decodes=*/true, options);
  multiply(x_MK, y_MN, decoding, x_MK.size(0), /*decodes=*/false, options);
  return y;
}

torch::Tensor PackedWeight::rows(const torch::Tensor& ids) const {
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
