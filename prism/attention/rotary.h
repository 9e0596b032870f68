// Rotary position tables, shared between all layers whose heads turn alike.
#pragma once

#include <torch/types.h>

#include <map>
#include <string>
#include <tuple>

namespace prism {

struct RotaryConfig {
  double base = 10000;
  std::string scaling = "none";
  double factor = 1;
  template <class Visitor>
  void visit(Visitor& v) {
    v("base", base, "b in theta_j = b^(-2j / D); larger turns slower");
    v("scaling", scaling, "none, or linear: positions divided by factor");
    v("factor", factor, "of linear scaling; 1 leaves positions as they are");
  }
};

/// Angle per token of each pair: theta_j = base^(-2j / D) / factor, j < D/2. [D/2] float64, radians.
/// @throws InputError for an odd width, an unknown scaling, or a base or factor that is not positive.
/// Source: arXiv 2104.09864; linear scaling arXiv 2306.15595.
torch::Tensor rotary_angles(const RotaryConfig& config, int64_t head_dim);

struct RotaryTable {
  torch::Tensor cos, sin;  ///< [positions, D/2] float32
};

/// One table for each (head width, base, scaling), grown to the longest position asked for, on the device that was
/// asked for last.
class RotaryCache {
 public:
  /// Rows [first, first + count).
  RotaryTable rows(const RotaryConfig& config, int64_t head_dim, int64_t first, int64_t count,
                   const torch::Device& device = torch::kCPU);
  /// One row for each entry of positions_BT (int64): [B, T, D/2], where the positions are.
  RotaryTable rows(const RotaryConfig& config, int64_t head_dim, const torch::Tensor& positions_BT);
  size_t tables() const { return tables_.size(); }

 private:
  const RotaryTable& table(const RotaryConfig& config, int64_t head_dim, int64_t positions,
                           const torch::Device& device);

  std::map<std::tuple<int64_t, double, std::string, double>, RotaryTable> tables_;
};

}  // namespace prism
