#include "prism/bench/feed_forward.h"

#include <ATen/Functions.h>

#include <functional>
#include <memory>

#include "prism/bench/measure.h"
#include "prism/core/error.h"
#include "prism/core/text/field_names.h"
#include "prism/kernels/compute_type.h"
#include "prism/layers/feed_forward.h"

namespace prism {
namespace {

/// One kind with its input.
class FeedForwardWork {
 public:
  FeedForwardWork(const std::string& kind, const FeedForwardShape& shape, torch::ScalarType type)
      : mlp_(make(kind, shape)), x_(torch::randn({shape.tokens, shape.d_model}).to(type)) {
    const torch::NoGradGuard no_gradients;
    for (const auto& entry : weights_of(*mlp_)) {
      entry.weight.tensor().normal_(0, 0.02);
      values_ += entry.traits.role == WeightRole::matrix ? entry.weight.numel() : 0;
    }
    x_.set_requires_grad(true);
    dy_ = torch::randn_like(x_);
  }
  void forward() const {
    const torch::NoGradGuard no_gradients;
    mlp_->forward(x_);
  }
  void both() const {
    mlp_->forward(x_).backward(dy_);
    clear_gradients(weights_of(*mlp_));
    x_.mutable_grad().reset();
  }
  /// FLOPs of both passes.
  double flops() const { return 6.0 * static_cast<double>(values_ * x_.size(0)); }

 private:
  static std::shared_ptr<FeedForward> make(const std::string& kind, const FeedForwardShape& shape) {
    const FfnConfig config{.kind = kind, .width = shape.width};
    return make_feed_forward(shape.d_model, config, shape.shares);
  }

  std::shared_ptr<FeedForward> mlp_;
  torch::Tensor x_, dy_;
  int64_t values_ = 0;
};

}  // namespace

void check_feed_forward_bench(const std::vector<std::string>& kinds, const FeedForwardShape& shape) {
  constexpr int64_t kMost = int64_t{1} << 20;
  for (const auto& [name, size] :
       {std::pair{"--d-model", shape.d_model}, {"--width", shape.width}, {"--tokens", shape.tokens}})
    PRISM_CHECK(size >= 1 && size <= kMost, "bench", "{}: expected 1 to {}; found {}; change it.", name, kMost, size);
  for (const auto& kind : kinds)
    naming_field("--kinds", [&] { check(FfnConfig{.kind = kind, .width = shape.width}, 0); });
  // Weights and gradients in float32 with copies, hidden features and their gradients.
  constexpr double kBytes = 12, kMatrices = 4;
  const auto count = static_cast<double>(kinds.size()), d_model = static_cast<double>(shape.d_model),
             width = static_cast<double>(shape.width), tokens = static_cast<double>(shape.tokens);
  check_tensors_fit(count * kBytes * kMatrices * width * (d_model + tokens),
                    fmt::format("{} features of width {} for {} tokens", shape.d_model, shape.width, shape.tokens));
}

std::vector<FeedForwardTiming> bench_feed_forward(const std::vector<std::string>& kinds, const FeedForwardShape& shape,
                                                  torch::ScalarType type, int64_t rounds, int threads) {
  check_feed_forward_bench(kinds, shape);
  std::vector<std::unique_ptr<FeedForwardWork>> work;
  std::vector<std::function<void()>> calls;
  for (const auto& kind : kinds) {
    const auto* made = work.emplace_back(std::make_unique<FeedForwardWork>(kind, shape, type)).get();
    calls.emplace_back([made] { made->forward(); });
    calls.emplace_back([made] { made->both(); });
  }
  const auto medians = medians_in_turn(calls, rounds);
  std::vector<FeedForwardTiming> rows;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const double both = medians[2 * i + 1];
    rows.push_back({.kind = kinds[i],
                    .dtype = compute_type_name(type),
                    .d_model = shape.d_model,
                    .width = shape.width,
                    .tokens = shape.tokens,
                    .shares = shape.shares,
                    .forward_ms = medians[2 * i],
                    .both_ms = both,
                    .ratio = both / medians[1],
                    .peak_share = share_of_peak(work[i]->flops() / both * 1e3, threads, type)});
  }
  return rows;
}

}  // namespace prism
