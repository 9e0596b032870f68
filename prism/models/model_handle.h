// A handle of a model, which copies share.
#pragma once

#include <cstddef>
#include <memory>

#include "prism/models/cost.h"
#include "prism/models/trunk.h"

namespace prism {

/// @tparam Model  a trunk with a head; constructed from a complete ModelConfig.
template <class Model>
class ModelHandle {
 public:
  /// An empty handle without a model.
  ModelHandle(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as modules of LibTorch have it
  /// @throws InputError if the weights do not fit into memory.
  explicit ModelHandle(const ModelConfig& config) : model_(std::make_shared<Model>(config)) {
    check_memory(model_cost(*model_).parameters, sizeof(float));
  }

  explicit operator bool() const { return model_ != nullptr; }
  Model* operator->() const { return model_.get(); }
  Model& operator*() const { return *model_; }

  /// Calls Trunk::forward().
  torch::Tensor operator()(const torch::Tensor& tokens_BT, const ForwardContext& context) const {
    return model_->forward(tokens_BT, context);
  }

 private:
  std::shared_ptr<Model> model_;
};

}  // namespace prism
