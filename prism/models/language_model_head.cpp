#include "prism/models/language_model_head.h"

#include "prism/kernels/cross_entropy.h"

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

torch::Tensor LanguageModelHead::token_losses(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT) const {
  const auto product = [&](const torch::Tensor& hidden) { return scored_logits(hidden); };
  const auto losses = head_token_losses(hidden_BTD.flatten(0, 1), weight().shape(), product,
                                        labels_BT.flatten().to(hidden_BTD.device()));
  return losses.view(labels_BT.sizes()).cpu();
}

}  // namespace prism
