#include "prism/models/language_model_head.h"

namespace prism {

LanguageModelHead::LanguageModelHead(const Weight& embedding)
    : LanguageModelHead(embedding.shape()[1], embedding.shape()[0]) {
  projection_.weight = embedding;
}

LanguageModelHead LanguageModelHead::for_training(int64_t d_model, int64_t vocab_size) {
  LanguageModelHead head(d_model, vocab_size);
  head.projection_ = Linear({.in = d_model, .out = {{{""}, vocab_size}}, .products = 0, .training_only = true});
  return head;
}

torch::Tensor LanguageModelHead::logits(const torch::Tensor& hidden) const {
  if (weight().packed() == nullptr) return projection_(hidden).to(weight().dtype());
  // Scores of the next token are those of decoding, wherever the hidden states come from.
  return weight().product(hidden.to(torch::kFloat), {.decoding = hidden.numel() / hidden.size(-1)});
}

torch::Tensor LanguageModelHead::scored_logits(const torch::Tensor& hidden) const {
  return weight().product(hidden, {.single = true});
}

torch::Tensor LanguageModelHead::loss(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT,
                                      double z_loss) const {
  return head_cross_entropy(hidden_BTD.flatten(0, 1), weight().tensor(), weight().cast(hidden_BTD.scalar_type()),
                            labels_BT.flatten().to(hidden_BTD.device()), z_loss);
}

TokenScores LanguageModelHead::scores(const torch::Tensor& hidden_ND, const torch::Tensor& labels_N,
                                      bool with_top) const {
  const auto product = [&](const torch::Tensor& hidden) { return scored_logits(hidden); };
  return head_token_scores(hidden_ND, weight().shape(), product, labels_N.to(hidden_ND.device()), with_top);
}

torch::Tensor LanguageModelHead::token_losses(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT) const {
  const auto found = scores(hidden_BTD.flatten(0, 1), labels_BT.flatten(), /*with_top=*/false);
  return found.losses_N.view(labels_BT.sizes()).cpu();
}

TokenScores LanguageModelHead::token_scores(const torch::Tensor& hidden_ND, const torch::Tensor& labels_N) const {
  const auto found = scores(hidden_ND, labels_N, /*with_top=*/true);
  return {found.losses_N.cpu(), found.is_top_N.cpu()};
}

}  // namespace prism
