// The list of a model's weights, which initialisation, optimizers, files, costs and diagnostics read.
//
//   void Attention::visit(WeightVisitor& v) const {
//     v.module("qkv", "", qkv);                       // names of its weights start with "qkv."
//     v.module("out", "", out);
//   }
//   for (const WeightEntry& entry : weights_of(*decoder)) ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "prism/layers/weight.h"

namespace prism {

enum class WeightRole {
  matrix,     ///< factor of a matrix product
  table,      ///< lookup table with one row for each id
  gain,       ///< scales the features of a token, initially 1
  head_gain,  ///< scales the features of a head, initially 1
  bias        ///< added to the result of a matrix product
};

/// A group of rows of a weight. Files store it as separate tensors, and optimizers for matrices treat it as separate
/// matrices.
struct WeightRows {
  std::vector<std::string> names;  ///< of stacked matrices of equal size; an empty name: the module's own name
  int64_t rows = 0;                ///< of each matrix
  int64_t heads = 1;               ///< number of heads that each matrix can be split into, by rows
};

/// Properties of a weight.
struct WeightTraits {
  WeightRole role = WeightRole::matrix;
  std::vector<WeightRows> rows = {};  ///< groups of rows in order; empty: one tensor with the module's own name
  int64_t fan_in = 0;                 ///< number of input features; for a bias, that of its matrix
  bool into_stream = false;           ///< the product is added to the residual stream
  bool feed_forward = false;          ///< belongs to a feed-forward part
  int64_t products = 0;               ///< products with this weight per token and forward pass
  bool training_only = false;         ///< inference does not use it
};

/// One use of a weight.
struct WeightUse {
  std::string module;           ///< outermost module that uses it: "embedding", "blocks_3", "head"
  std::optional<size_t> layer;  ///< std::nullopt: outside the layers
  int64_t products = 0;
};

/// A tensor in a model file. It holds some rows of a weight.
struct FileTensor {
  std::string name;  ///< Hugging Face's name in Llama; weights that Llama lacks are named in the same style
  std::string part;  ///< short name within a layer: "self_attn.q_proj", "self_attn.q_proj.bias"; empty outside layers
  int64_t first_row = 0, rows = 0;

  /// The tensor's rows of `values`, which may be the weight's values, its gradients or anything of their shape.
  /// Undefined for an undefined tensor.
  torch::Tensor of(const torch::Tensor& values) const;
};

/// A weight with its name and all its uses.
struct WeightEntry {
  std::string name;  ///< that of its first use, e.g. "blocks_3.attention.qkv.weight"; seeds its initial values and
                     ///< names its optimizer moments
  Weight weight;
  WeightTraits traits;
  std::vector<FileTensor> tensors;  ///< in row order
  std::vector<WeightUse> uses;

  /// The layer of its first use, if any.
  std::optional<size_t> layer() const { return uses.front().layer; }
  /// Products with this weight per token and forward pass, over all uses.
  int64_t products() const;
};

/// Walks over modules. Each module has visit(WeightVisitor&), which reports its weights and submodules.
class WeightVisitor {
 public:
  /// Reports a weight of the current module; an empty weight is ignored. A weight reported before gets another use in
  /// its existing entry.
  /// @throws InternalError if a later use describes other rows or another role. A table may also be a matrix: a tied
  ///         embedding.
  void weight(const std::string& name, const Weight& weight, WeightTraits traits);
  /// Visits a submodule. Adds `name` to the names of its weights, and `file_name` to their names in files (empty: adds
  /// nothing).
  template <class Module>
  void module(const std::string& name, const std::string& file_name, const Module& module) {
    const Scope around = enter(name, file_name);
    module.visit(*this);
    scope_ = around;
  }
  /// Visits a submodule that is a layer. Uses of weights inside it count for that layer.
  template <class Module>
  void layer(size_t index, const std::string& name, const std::string& file_name, const Module& layer) {
    layer_ = index;
    const Scope around = enter(name, file_name);
    scope_.part.clear();
    layer.visit(*this);
    scope_ = around;
    layer_.reset();
  }

  std::vector<WeightEntry> take() { return std::move(entries_); }

 private:
  struct Scope {
    std::string name, file_name, part;
  };
  /// Enters a nested scope. @return  the scope before.
  Scope enter(const std::string& name, const std::string& file_name);

  Scope scope_;
  std::optional<size_t> layer_;
  std::vector<WeightEntry> entries_;
  std::unordered_map<const void*, size_t> places_;  ///< index into entries_ by Weight::identity()
};

/// All weights of a module, each once, in the order of their first use.
template <class Module>
std::vector<WeightEntry> weights_of(const Module& module) {
  WeightVisitor visitor;
  module.visit(visitor);
  return visitor.take();
}

/// Number of values of all weights.
int64_t parameter_count(const std::vector<WeightEntry>& weights);
/// The same without weights that only training uses: the size of the model.
int64_t inference_parameters(const std::vector<WeightEntry>& weights);

/// Moves all weights.
void move_weights(const std::vector<WeightEntry>& weights, const torch::Device& device);
/// Clears all gradients.
void clear_gradients(const std::vector<WeightEntry>& weights);

}  // namespace prism
