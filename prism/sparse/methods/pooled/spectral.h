// The spectral selector: two bands of rotary pairs choose key blocks, each by its own softmax over pooled queries and
// keys.
//
// Source: arXiv 2602.08426. Where the paper's code and text differ or are unclear, docs/papers.md says what prism does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/methods/pooled/bands.h"
#include "prism/sparse/selector.h"

namespace prism {

struct SpectralOptions {
  double p = 0.95, p_high = 0, p_low = 0;
  std::string bands = "paper";
  int64_t high_dims = 0, low_dims = 0;
  std::string calibration = "causal_running", tail = "exact";
  int64_t sink = 1, recent = 4, last_dense = 2;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("p", p, "share of each band's softmax that the kept blocks cover");
    v("p_high", p_high, "p of the band of fast pairs; 0: the value of p");
    v("p_low", p_low, "p of the band of slow pairs; 0: the value of p");
    v("bands", bands,
      "features of the two bands. paper: from high_dims and low_dims; auto: by how much averaging over a block shrinks "
      "each rotary pair, as prism analyse spectrum shows");
    v("high_dims", high_dims, "features in the band of fast pairs; 0: half of the rotary features");
    v("low_dims", low_dims,
      "features in the band of slow pairs, which may overlap the other band; 0: three quarters of the rotary features");
    v("calibration", calibration,
      "temperature by which each band's scores are divided, computed from the root mean square of the "
      "band's averaged queries and keys. causal_running: over the blocks up to the current row, so the result does not "
      "depend on how a prompt is cut into chunks of whole blocks; all_blocks: over all blocks, as in the authors' "
      "code; off: none");
    v("tail", tail,
      "mean of an incomplete block. exact: over its tokens; padded: with zeros up to a whole block, as in the authors' "
      "code");
    v("sink", sink, "number of first key blocks that every row keeps");
    v("recent", recent, "number of most recent key blocks that every row keeps, counting the row's own block; 0: none");
    v("last_dense", last_dense,
      "number of last blocks of queries of a prompt that keep every block they see, because a question at the end may "
      "be "
      "about any of them");
    blocks.visit(v);
  }
};

/// Temperature of a band z with n of a head's d features, from root mean squares over pooled queries Q and keys K:
///
///   tau_z = sqrt(n / d) (RMS(Q_z) / max(RMS(Q), 1e-6)) (RMS(K_z) / max(RMS(K), 1e-6))
///
/// @param query_blocks, key_blocks  number of blocks that the root mean squares are taken over.
/// Source: arXiv 2602.08426, section 3.4, equation 13.
double band_temperature(const BandedBlocks& queries, int64_t query_blocks, const BandedBlocks& keys, int64_t key_blocks,
                        size_t band);

/// Scores are scaled by 1 / sqrt(D) and calibrated, independent of the attention's scale (SelectorInput::scale).
/// @throws InputError for unknown names and values out of range.
std::unique_ptr<Selector> make_spectral_selector(const SpectralOptions& options);

}  // namespace prism
