// The weights of a model, each described once: initialisation, optimizers, files, costs and diagnostics read this list.
//
//   void Attention::visit(WeightVisitor& v) const {
//     v.module("qkv", "", qkv);                       // names of its weights begin with "qkv."
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
  matrix,     ///< of a product
  table,      ///< rows that ids are looked up in
  gain,       ///< factors of the features of a token, 1 at first
  head_gain,  ///< factors of the features of a head, 1 at first
  bias        ///< added to what a matrix makes
};

/// Rows of a weight that are tensors of their own in a file, and matrices of their own to optimizers that work on
/// matrices.
struct WeightRows {
  std::vector<std::string> names;  ///< of equal matrices, one below the other; empty text: the module's own name
  int64_t rows = 0;                ///< of each
  int64_t heads = 1;               ///< that each can be cut into, between rows
};

/// What a weight is.
struct WeightTraits {
  WeightRole role = WeightRole::matrix;
  std::vector<WeightRows> rows = {};  ///< from the first row to the last; empty: one tensor with the module's own name
  int64_t fan_in = 0;                 ///< features that a sum is over; of a bias: of its matrix
  bool into_stream = false;           ///< the product is added to the residual stream
  bool feed_forward = false;          ///< part of a feed-forward part
  int64_t products = 0;               ///< that a token takes with it in a forward pass
};

/// One use of a weight.
struct WeightUse {
  std::string module;           ///< outermost module that uses it: "embedding", "blocks_3", "head"
  std::optional<size_t> layer;  ///< absent: outside the layers
  int64_t products = 0;
};

/// A tensor of a model's file: rows of a weight.
struct FileTensor {
  std::string name;  ///< as Hugging Face's Llama calls it, and in its manner what that does not have
  std::string part;  ///< short for its place in a layer: "self_attn.q_proj", "self_attn.q_proj.bias"; empty outside
  int64_t first_row = 0, rows = 0;

  /// Those rows of the weight's values or gradients, or of anything of their shape; undefined for an undefined tensor.
  torch::Tensor of(const torch::Tensor& values) const;
};

/// A weight with its name and all its uses.
struct WeightEntry {
  std::string name;  ///< "blocks_3.attention.qkv.weight", of the first use: seeds its initial values, names its moments
  Weight weight;
  WeightTraits traits;
  std::vector<FileTensor> tensors;  ///< from the first row to the last
  std::vector<WeightUse> uses;

  /// The layer that uses it first; absent: none.
  std::optional<size_t> layer() const { return uses.front().layer; }
  /// That a token takes with it, over all uses.
  int64_t products() const;
};

/// Goes over modules. Each has visit(WeightVisitor&), which calls this with what the module consists of.
class WeightVisitor {
 public:
  /// A weight of the module that is being visited; nothing for no weight. One that was met before is the same entry,
  /// used once more. @throws InternalError if its second use describes other rows or another role: a table may also be
  /// a matrix, as a tied embedding is.
  void weight(const std::string& name, const Weight& weight, WeightTraits traits);
  /// A module inside it, whose weights' names begin with `name`, and with `file_name` in files (empty: with nothing
  /// more than those around it).
  template <class Module>
  void module(const std::string& name, const std::string& file_name, const Module& module) {
    const Scope around = enter(name, file_name);
    module.visit(*this);
    scope_ = around;
  }
  /// A layer: a module whose uses of weights are that layer's.
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
  /// Narrows the scope. @return  what it was.
  Scope enter(const std::string& name, const std::string& file_name);

  Scope scope_;
  std::optional<size_t> layer_;
  std::vector<WeightEntry> entries_;
  std::unordered_map<const void*, size_t> places_;  ///< of weights among the entries
};

/// All weights of a module, each once, in the order in which they are met.
template <class Module>
std::vector<WeightEntry> weights_of(const Module& module) {
  WeightVisitor visitor;
  module.visit(visitor);
  return visitor.take();
}

/// Values of all of them: what a model's parameters count.
int64_t parameter_count(const std::vector<WeightEntry>& weights);

/// Moves or converts all of them.
void move_weights(const std::vector<WeightEntry>& weights, const torch::Device& device);
void convert_weights(const std::vector<WeightEntry>& weights, torch::ScalarType type);
/// Forgets all gradients.
void clear_gradients(const std::vector<WeightEntry>& weights);

/// The weight of that name. @throws InternalError if there is none.
const Weight& find_weight(const std::vector<WeightEntry>& weights, const std::string& name);

}  // namespace prism
