#include "prism/kernels/attention/attend.h"

#include <array>

#include "prism/core/error.h"

namespace prism {
namespace {

std::string shape_text(const torch::Tensor& tensor) {
  return c10::str(tensor.sizes());
}

/// @param most  number of rows, the largest allowed length.
void check_lengths(const torch::Tensor& lengths, int64_t batch, int64_t most, const char* name) {
  if (!lengths.defined()) return;
  PRISM_CHECK(lengths.dim() == 1 && lengths.size(0) == batch && lengths.scalar_type() == torch::kInt, "attend",
              "{}: expected int32 [{}]; found {}; pass a length for each sequence.", name, batch, shape_text(lengths));
  if (!lengths.is_cpu()) return;  // reading them would synchronise with the device; the masks used there clip lengths
  const auto dense = lengths.contiguous();
  for (int64_t b = 0; b < batch; ++b) {
    const int32_t length = dense.const_data_ptr<int32_t>()[b];
    PRISM_CHECK(
        length >= 0 && length <= most, "attend",
        "{}: expected lengths from 0 to {}; found {}; pass the number of valid keys or queries of each sequence.", name,
        most, length);
  }
}

/// The following functions check everything that the header requires and a backend relies on.
void check_dense_rows(const torch::Tensor& tensor, const char* name) {
  PRISM_CHECK(tensor.size(-1) <= 1 || tensor.stride(-1) == 1, "attend",
              "{}: expected a dense last axis; found stride {}; make it contiguous.", name, tensor.stride(-1));
}

void check_page_table(const KeyValues& kv, int64_t batch) {
  PRISM_CHECK(
      kv.page_table_BN.dim() == 2 && kv.page_table_BN.size(0) == batch && kv.page_table_BN.scalar_type() == torch::kInt,
      "attend", "page table: expected int32 [{}, pages]; found {}; pass a row of pages for each sequence.", batch,
      shape_text(kv.page_table_BN));
  PRISM_CHECK(kv.k_BGSD.size(2) > 0, "attend", "expected pages of at least one position; found {}; make them larger.",
              shape_text(kv.k_BGSD));
  PRISM_CHECK(!kv.k_BGSD.requires_grad() && !kv.v_BGSE.requires_grad(), "attend",
              "expected paged keys and values that require no gradients; gather them first.");
}

/// Number of pages that hold a sequence's keys. @param lengths  dense, on the CPU; undefined: all pages.
int64_t pages_used(const KeyValues& kv, const torch::Tensor& lengths, int64_t b) {
  if (!lengths.defined()) return kv.page_table_BN.size(1);
  const int64_t page = kv.k_BGSD.size(2);
  return (lengths.const_data_ptr<int32_t>()[b] + page - 1) / page;
}

torch::Tensor on_cpu(const torch::Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return tensor.is_cpu() ? tensor.contiguous() : tensor.to(torch::kCPU).contiguous();
}

/// Checks the entries that hold keys. A decoded token calls this in every layer. Lengths must be checked before.
void check_entries(const KeyValues& kv, const torch::Tensor& kv_lengths_B) {
  const auto table = on_cpu(kv.page_table_BN), lengths = on_cpu(kv_lengths_B);
  const int64_t width = table.size(1), pages = kv.k_BGSD.size(0);
  for (int64_t b = 0; b < table.size(0); ++b) {
    const int32_t* entries = table.const_data_ptr<int32_t>() + b * width;
    for (int64_t i = 0; i < pages_used(kv, lengths, b); ++i)
      PRISM_CHECK(entries[i] >= 0 && entries[i] < pages, "attend",
                  "page table: expected pages from 0 to {}; found {} for positions {} and after of sequence {}; pass "
                  "indices of existing pages.",
                  pages - 1, entries[i], i * kv.k_BGSD.size(2), b);
  }
}

void check_types(const torch::Tensor& q, const KeyValues& kv) {
  const auto type = q.scalar_type(), k_type = kv.k_BGSD.scalar_type(), v_type = kv.v_BGSE.scalar_type();
  const auto expected = kv.is_int8() ? torch::kChar : type;
  PRISM_CHECK(
      at::isFloatingType(type) && k_type == expected && v_type == expected, "attend",
      "expected q, k and v of one floating type, or k and v of int8 with scales; found {}, {} and {} {} scales; "
      "convert them.",
      c10::toString(type), c10::toString(k_type), c10::toString(v_type), kv.is_int8() ? "with" : "without");
  if (!kv.is_int8()) return;
  PRISM_CHECK(kv.is_paged(), "attend", "expected int8 keys and values in pages; found no page table; pass one.");
  const auto shape = kv.k_BGSD.sizes().slice(0, 3);
  for (const auto* scales : {&kv.k_scales_PGS, &kv.v_scales_PGS}) {
    PRISM_CHECK(scales->defined() && scales->sizes() == shape && scales->scalar_type() == torch::kFloat, "attend",
                "expected float32 scales {} of k and v; found {}; pass a scale for each row of a page.",
                c10::str(shape), scales->defined() ? shape_text(*scales) : "none");
    check_dense_rows(*scales, "scales");
  }
}

void check_key_values(const KeyValues& kv, int64_t batch, int64_t heads, int64_t head_dim) {
  PRISM_CHECK(
      kv.k_BGSD.dim() == 4 && kv.v_BGSE.dim() == 4 && kv.k_BGSD.sizes().slice(0, 3) == kv.v_BGSE.sizes().slice(0, 3),
      "attend", "expected k [B, G, S, D] and v [B, G, S, E]; found {} and {}; reshape them.", shape_text(kv.k_BGSD),
      shape_text(kv.v_BGSE));
  PRISM_CHECK(kv.k_BGSD.size(3) == head_dim, "attend",
              "expected keys as wide as queries, {}; found {}; slice or project one of them.", head_dim,
              kv.k_BGSD.size(3));
  check_dense_rows(kv.k_BGSD, "k");
  check_dense_rows(kv.v_BGSE, "v");
  const int64_t groups = kv.k_BGSD.size(1);
  PRISM_CHECK(groups > 0 && heads % groups == 0, "attend",
              "expected query heads in equal groups; found {} for {} key heads; choose a multiple.", heads, groups);
  if (kv.is_paged()) return check_page_table(kv, batch);
  PRISM_CHECK(kv.k_BGSD.size(0) == batch, "attend", "expected keys for {} sequences; found {}; pass one batch of both.",
              batch, kv.k_BGSD.size(0));
}

void check_input(const AttentionInput& input) {
  const auto& q = input.q_BTHD;
  PRISM_CHECK(q.dim() == 4, "attend", "expected q [B, T, H, D]; found {}; reshape it.", shape_text(q));
  check_dense_rows(q, "q");
  const int64_t batch = q.size(0), heads = q.size(2);
  check_key_values(input.kv, batch, heads, q.size(3));
  check_types(q, input.kv);
  const int64_t keys = input.kv.positions();
  check_lengths(input.q_lengths_B, batch, q.size(1), "q_lengths");
  check_lengths(input.kv_lengths_B, batch, keys, "kv_lengths");
  if (input.kv.is_paged()) check_entries(input.kv, input.kv_lengths_B);
  const auto& documents = input.documents_BS;
  PRISM_CHECK(!documents.defined() || (documents.dim() == 2 && documents.size(0) == batch && documents.size(1) == keys),
              "attend", "documents: expected [{}, {}]; found {}; pass an id for each token.", batch, keys,
              shape_text(documents));
  PRISM_CHECK(input.window >= 0 && (input.window == 0 || input.causality == Causality::causal), "attend",
              "window: expected 0, or a number of keys for causal attention; found {}{}; change it.", input.window,
              input.causality == Causality::causal ? "" : " for full attention");
  const auto& kept = input.kept_heads_BH;
  PRISM_CHECK(!kept.defined() || (kept.dim() == 2 && kept.size(0) == batch && kept.size(1) == heads &&
                                  kept.scalar_type() == torch::kBool),
              "attend", "kept heads: expected bool [{}, {}]; found {}; pass a flag for each head of each sequence.",
              batch, heads, shape_text(kept));
  const auto& weights = input.head_weights_BH;
  PRISM_CHECK(!weights.defined() || (weights.dim() == 2 && weights.size(0) == batch && weights.size(1) == heads &&
                                     at::isFloatingType(weights.scalar_type())),
              "attend",
              "head weights: expected floating-point numbers [{}, {}]; found {} {}; pass one for each head of each "
              "sequence.",
              batch, heads, c10::toString(weights.scalar_type()), shape_text(weights));
  const auto& blocks = input.block_mask.counts_BHM;
  PRISM_CHECK(!blocks.defined() ||
                  (blocks.dim() == 3 && blocks.size(0) == batch && blocks.size(1) > 0 && heads % blocks.size(1) == 0),
              "attend",
              "block mask: expected counts [{0}, {1}, rows], or a divisor of {1} instead of {1}; found {2}; reshape "
              "them.",
              batch, heads, shape_text(blocks));
  PRISM_CHECK(input.skip_share >= 0 && input.skip_share <= 1, "attend",
              "skip share: expected 0 to 1; found {}; change it.", input.skip_share);
}

/// Gathers the pages of an input's sequences.
class PageGatherer {
 public:
  explicit PageGatherer(const AttentionInput& input)
      : type_(input.q_BTHD.scalar_type()),
        table_BN_(input.kv.page_table_BN.to(torch::kLong, /*non_blocking=*/false, /*copy=*/true)),
        lengths_(on_cpu(input.kv_lengths_B)) {
    for (int64_t b = 0; b < table_BN_.size(0); ++b) {  // entries that hold no keys may be anything
      const int64_t used = pages_used(input.kv, lengths_, b);
      table_BN_[b].narrow(0, used, table_BN_.size(1) - used).zero_();
    }
  }

  /// @param scales_PGS  of int8 pages; else undefined.
  torch::Tensor operator()(const torch::Tensor& pages_PGSD, const torch::Tensor& scales_PGS) const {
    const int64_t batch = table_BN_.size(0), count = table_BN_.size(1);
    const auto pages_N = table_BN_.flatten();
    auto whole = pages_PGSD.index_select(0, pages_N);
    if (scales_PGS.defined()) {
      const auto work = type_ == torch::kDouble ? torch::kDouble : torch::kFloat;
      whole = (whole.to(work) * scales_PGS.index_select(0, pages_N).unsqueeze(-1)).to(type_);
    }
    whole = whole.reshape({batch, count, pages_PGSD.size(1), pages_PGSD.size(2), pages_PGSD.size(3)})
                .transpose(1, 2)
                .reshape({batch, pages_PGSD.size(1), count * pages_PGSD.size(2), pages_PGSD.size(3)});
    // Unwritten memory may hold NaN, and a weight of 0 times NaN is NaN.
    if (lengths_.defined())
      for (int64_t b = 0; b < batch; ++b) {
        const int64_t length = lengths_.const_data_ptr<int32_t>()[b];
        whole[b].narrow(1, length, whole.size(2) - length).zero_();
      }
    return whole;
  }

 private:
  torch::ScalarType type_;
  torch::Tensor table_BN_, lengths_;  ///< int64; int32 on the CPU, undefined: all keys
};

}  // namespace

AttentionOutput attend(const AttentionInput& input, AttentionBackend backend) {
  check_input(input);
  if (backend == AttentionBackend::automatic) backend = choose_backend(input);
  if (backend == AttentionBackend::reference) return attend_reference(input);
  if (backend == AttentionBackend::flash) {
    PRISM_CHECK(
        flash_backend_serves(input), "attend",
        "expected bfloat16, float32 or float16 on the CPU, head widths that are multiples of 8 up to 512 and no "
        "gradients through a block mask or head weights for the flash backend; found another input; use reference or "
        "torch.");
    return attend_flash(input);
  }
  PRISM_CHECK(
      torch_backend_serves(input), "attend",
      "expected values as wide as keys, on a GPU a multiple of 8, for the torch backend; found width {} for {}; use "
      "reference.",
      input.kv.v_BGSE.size(3), input.q_BTHD.size(3));
  return attend_torch(input);
}

AttentionBackend choose_backend(const AttentionInput& input) {
  if (flash_backend_serves(input)) return AttentionBackend::flash;
  return torch_backend_serves(input) ? AttentionBackend::torch : AttentionBackend::reference;
}

const char* backend_name(AttentionBackend backend) {
  static constexpr std::array kNames = {"automatic", "reference", "flash", "torch"};
  return kNames.at(static_cast<size_t>(backend));
}

KeyValues gather_pages(const AttentionInput& input) {
  const KeyValues& kv = input.kv;
  if (!kv.is_paged()) return kv;
  const PageGatherer gather(input);
  return {gather(kv.k_BGSD, kv.k_scales_PGS), gather(kv.v_BGSE, kv.v_scales_PGS)};
}

torch::Tensor gather_keys(const AttentionInput& input) {
  return PageGatherer(input)(input.kv.k_BGSD, input.kv.k_scales_PGS);
}

torch::Tensor visible_keys(const AttentionInput& input) {
  PRISM_ASSERT(!input.kv.is_paged(), "attend", "visible keys of paged input");
  const auto& q = input.q_BTHD;
  const int64_t batch = q.size(0), queries = q.size(1), keys = input.kv.k_BGSD.size(2);
  const auto longs = torch::TensorOptions(torch::kLong).device(q.device());
  const auto lengths = [&](const torch::Tensor& given, int64_t all) {
    return given.defined() ? given.to(torch::kLong) : torch::full({batch}, all, longs);
  };
  const auto q_lengths_B = lengths(input.q_lengths_B, queries), kv_lengths_B = lengths(input.kv_lengths_B, keys);
  const auto shift_B = kv_lengths_B - q_lengths_B;
  const auto query_T = torch::arange(queries, longs), key_S = torch::arange(keys, longs);
  const auto position_BT = query_T + shift_B.unsqueeze(1);  // key position of each query

  torch::Tensor visible_BTS;
  const auto restrict_to = [&](const torch::Tensor& more) {
    visible_BTS = visible_BTS.defined() ? visible_BTS & more : more;
  };
  if (input.q_lengths_B.defined())
    restrict_to((query_T < q_lengths_B.unsqueeze(1)).unsqueeze(2).expand({-1, -1, keys}));
  if (input.kv_lengths_B.defined())
    restrict_to((key_S < kv_lengths_B.unsqueeze(1)).unsqueeze(1).expand({-1, queries, -1}));
  if (input.causality == Causality::causal) restrict_to(key_S <= position_BT.unsqueeze(2));
  if (input.window > 0) restrict_to(key_S > position_BT.unsqueeze(2) - input.window);
  if (input.documents_BS.defined()) {
    const auto own_BT = input.documents_BS.gather(1, position_BT.clamp(0, keys - 1));
    restrict_to(input.documents_BS.unsqueeze(1) == own_BT.unsqueeze(2));
  }
  if (!input.block_mask.defined()) return visible_BTS.defined() ? visible_BTS.unsqueeze(1) : visible_BTS;

  const auto first_B = input.first_query ? torch::full({batch}, *input.first_query, longs) : shift_B;
  const auto blocks_BHTS = expand_block_mask(spread_to_heads(input.block_mask, input.q_BTHD.size(2)),
                                             first_B.clamp_min(0), q_lengths_B, queries, keys);
  return visible_BTS.defined() ? visible_BTS.unsqueeze(1) & blocks_BHTS : blocks_BHTS;
}

}  // namespace prism
