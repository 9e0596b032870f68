// Runs the flash kernels of one instruction set on raw memory, and computes the truth and an error bound of each
// result.
//
//   const Errors errors = errors_of<float>({.queries = 19, .keys = 43}, *flash::kernels_of(Isa::avx2), 2);
//   EXPECT_LE(errors.out, 1);
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <vector>

#include "prism/core/random.h"
#include "prism/kernels/flash/flash.h"
#include "tests/kernels/bfloat16.h"
#include "tests/kernels/guarded.h"

namespace prism {

struct Case {
  int64_t batch = 1, queries = 7, keys = 7, heads = 1, kv_heads = 1, key_dim = 8, value_dim = 8;
  int64_t document = 0;      ///< keys of a document; 0: one document
  bool scattered = false;    ///< each query sees a different interval; many are short, some are empty
  double magnitude = 1;      ///< of queries, and thus of scores
  bool one_hot = false;      ///< row r of each input is unit vector r modulo its width
  bool drop_a_head = false;  ///< drops the second head
  bool drop_a_key = false;   ///< drops a key from the kernels' input but not from the truth: a fault
};

inline std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "B" << c.batch << " T" << c.queries << " S" << c.keys << " H" << c.heads << " G" << c.kv_heads << " D"
             << c.key_dim << " E" << c.value_dim << " document " << c.document << " magnitude " << c.magnitude
             << (c.one_hot ? " one-hot" : "");
}

inline uint16_t to_storage(double x, uint16_t) {
  return narrow(static_cast<float>(x));
}
inline float to_storage(double x, float) {
  return static_cast<float>(x);
}
inline double to_storage(double x, double) {
  return x;
}
inline double from_storage(double x) {
  return x;
}
inline double from_storage(uint16_t x) {
  return widen(x);
}
inline double from_storage(float x) {
  return x;
}

/// A [batch, row, head, width] tensor with gaps between its rows, like a slice of fused rows, and none after the last.
template <class Storage>
struct Tensor {
  int64_t batch, rows, heads, width, row_stride;
  Guarded<Storage> values;

  Tensor(int64_t batch_size, int64_t row_count, int64_t head_count, int64_t head_width)
      : batch(batch_size),
        rows(row_count),
        heads(head_count),
        width(head_width),
        row_stride((head_count + 1) * head_width),
        values(static_cast<size_t>(batch_size * row_count * row_stride - head_width), to_storage(99, Storage{})) {}

  void fill(Random& random, double magnitude) {
    for (auto& value : values) {
      const double normal =
          std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(6.283185307179586 * random.uniform());
      value = to_storage(magnitude * normal, Storage{});
    }
  }
  void fill_one_hot(double magnitude) {
    std::fill(values.begin(), values.end(), to_storage(0, Storage{}));
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t row = 0; row < rows; ++row)
        for (int64_t head = 0; head < heads; ++head) set(b, row, head, row % width, magnitude);
  }
  size_t index(int64_t b, int64_t row, int64_t head, int64_t i) const {
    return static_cast<size_t>((b * rows + row) * row_stride + head * width + i);
  }
  double at(int64_t b, int64_t row, int64_t head, int64_t i) const {
    return from_storage(values[index(b, row, head, i)]);
  }
  void set(int64_t b, int64_t row, int64_t head, int64_t i, double x) {
    values[index(b, row, head, i)] = to_storage(x, Storage{});
  }
  void add(int64_t b, int64_t row, int64_t head, int64_t i, double x) { set(b, row, head, i, at(b, row, head, i) + x); }
  flash::Matrix matrix() { return {values.data(), rows * row_stride, width, row_stride}; }
};

template <class Storage>
struct Tensors {
  explicit Tensors(const Case& c)
      : q(c.batch, c.queries, c.heads, c.key_dim),
        k(c.batch, c.keys, c.kv_heads, c.key_dim),
        v(c.batch, c.keys, c.kv_heads, c.value_dim),
        out(c.batch, c.queries, c.heads, c.value_dim),
        d_out(out),
        dq(q),
        dk(k),
        dv(v),
        lse(static_cast<size_t>(c.batch * c.heads * c.queries)) {}
  Tensor<Storage> q, k, v, out, d_out, dq, dk, dv;
  Guarded<float> lse;
};

/// Inputs, the keys each query sees, and the results of one instruction set.
template <class Storage>
class FlashRun {
 public:
  FlashRun(const Case& c, const flash::Kernels& kernels, int threads) : c_(c), t_(c), truth_(c), bound_(c) {
    Random random(7);
    const auto fill = [&](Tensor<Storage>& tensor, double magnitude) {
      if (c.one_hot)
        tensor.fill_one_hot(magnitude);
      else
        tensor.fill(random, magnitude);
    };
    fill(t_.q, c.magnitude);
    fill(t_.k, 1);
    fill(t_.v, 1);
    fill(t_.d_out, 1);
    choose_intervals();
    problem_.type = sizeof(Storage) == 2 ? flash::Type::bfloat16 : flash::Type::float32;
    problem_.batch = c.batch;
    problem_.queries = c.queries;
    problem_.keys = c.keys;
    problem_.heads = c.heads;
    problem_.kv_heads = c.kv_heads;
    problem_.key_dim = c.key_dim;
    problem_.value_dim = c.value_dim;
    problem_.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(c.key_dim)));
    problem_.first_key_BT = first_.data();
    problem_.end_key_BT = seen_.data();
    problem_.threads = threads;
    kept_ = std::make_unique<bool[]>(static_cast<size_t>(c.batch * c.heads));
    for (int64_t i = 0; i < c.batch * c.heads; ++i) kept_[static_cast<size_t>(i)] = !(c.drop_a_head && i == 1);
    if (c.drop_a_head) problem_.kept_heads_BH = kept_.get();
    pairs_ = sizeof(Storage) == 2 && (&kernels == &flash::kAvx512Bf16 || &kernels == &flash::kAmxBf16);
    for (auto member : {&Tensors<double>::dk, &Tensors<double>::dv})
      for (auto* tensors : {&truth_, &bound_})
        std::fill((tensors->*member).values.begin(), (tensors->*member).values.end(), 0.0);
    run(kernels);
  }

  /// The last query of every sequence but the first sees no key. With documents each query sees only its own document.
  void choose_intervals() {
    if (c_.scattered) return scatter_intervals();
    for (int64_t b = 0; b < c_.batch; ++b)
      for (int64_t t = 0; t < c_.queries; ++t) {
        const int64_t position = t + c_.keys - c_.queries;
        const int64_t end = std::max<int64_t>(0, position + 1);
        const bool blind = b > 0 && t + 1 == c_.queries;
        first_.push_back(
            static_cast<int32_t>(c_.document > 0 && position >= 0 ? position / c_.document * c_.document : 0));
        end_.push_back(static_cast<int32_t>(blind ? first_.back() : end));
      }
    seen_ = end_;
    if (c_.drop_a_key) --seen_[static_cast<size_t>(query_that_minds())];
  }

  void scatter_intervals() {
    Random random(9);
    const auto below = [&](int64_t n) { return static_cast<int32_t>(random.below(static_cast<uint64_t>(n))); };
    for (int64_t i = 0; i < c_.batch * c_.queries; ++i) {
      first_.push_back(below(c_.keys));
      const int64_t left = c_.keys - first_.back();
      end_.push_back(first_.back() + below(1 + (i % 3 == 0 ? std::min<int64_t>(left, 3) : left)));
    }
    seen_ = end_;
  }

  /// The query, in the second half, whose last key has the highest score: dropping that key shows.
  int64_t query_that_minds() const {
    int64_t found = 0;
    double highest = -std::numeric_limits<double>::infinity();
    for (int64_t t = c_.queries / 2; t < c_.queries; ++t) {
      double score = 0;
      for (int64_t i = 0; i < c_.key_dim; ++i)
        score += t_.q.at(0, t, 0, i) * t_.k.at(0, end_[static_cast<size_t>(t)] - 1, 0, i);
      if (score > highest) highest = score, found = t;
    }
    return found;
  }

  void run(const flash::Kernels& kernels) {
    flash::Forward f(problem_);
    const auto tasks = flash::plan(f);
    GuardedScratch scratch(kernels.forward_scratch(f), kStale);
    f.q = t_.q.matrix(), f.k = t_.k.matrix(), f.v = t_.v.matrix(), f.out = t_.out.matrix();
    f.lse_BHT = t_.lse.data();
    f.scratch = scratch.data();
    f.tasks = tasks.data();
    f.task_count = static_cast<int64_t>(tasks.size());
    kernels.forward(f);
    flash::Backward b(problem_);
    b.q = f.q, b.k = f.k, b.v = f.v, b.out = f.out, b.d_out = t_.d_out.matrix();
    b.dq = t_.dq.matrix(), b.dk = t_.dk.matrix(), b.dv = t_.dv.matrix();
    b.lse_BHT = t_.lse.data();
    scratch = GuardedScratch(kernels.backward_scratch(b), kStale);
    b.scratch = scratch.data();
    kernels.backward(b);
  }

  void compute_truth();
  const Tensors<Storage>& results() const { return t_; }
  /// The largest error of a tensor's elements, as a share of its bound. Also checks that the gaps between rows are
  /// untouched.
  double worst(Tensor<Storage> Tensors<Storage>::*found, Tensor<double> Tensors<double>::*truth) const;
  double worst_lse() const;
  bool kept(int64_t b, int64_t h) const { return kept_[static_cast<size_t>(b * c_.heads + h)]; }

 private:
  static constexpr std::byte kStale{0xFF};  ///< NaN, of any type

  Case c_;
  Tensors<Storage> t_;
  Tensors<double> truth_, bound_;  ///< bound_: the largest allowed error of each element
  std::vector<double> lse_, lse_bound_;
  std::vector<int32_t> first_, end_, seen_;  ///< first_ and end_ are the truth; the kernels get seen_ as end
  std::unique_ptr<bool[]> kept_;
  bool pairs_ = false;  ///< whether weights and slopes are rounded to bfloat16 before products
  flash::Problem problem_;
};

/// Computes attention by its definition, element by element, its gradients by the formulas of the softmax, and an error
/// bound for each result. With u = 2^-24, the rounding of float32, and h, the rounding of a product's operands (0 for
/// float32, 2^-8 for bfloat16):
///
///   scores  s_j: (D + 8) u scale sum_i |q_i k_ji| + 4 u (|s_j| + |s_max|)
///   weights p_j: p_j r, r = 2 max_j error(s_j) + 2 (error of 2^x) + (S + 16) u, plus h as operands of a product
///   slopes  p_j (dp_j - delta): errors of p_j as above, of dp_j (E + 4) u sum_i |dO_i v_ji|, of delta as for out
///
/// Sums over products carry the errors of both operands and u for each term; results are rounded to Storage.
template <class Storage>
void FlashRun<Storage>::compute_truth() {
  const double u = 0x1p-24, h_unit = pairs_ ? 0x1p-8 : 0, round = sizeof(Storage) == 2 ? 0x1p-8 : u;
  const double exp_error = pairs_ ? 2.7e-6 : 1.6e-7, scale = problem_.scale;
  const auto keys = static_cast<double>(c_.keys), terms = static_cast<double>(c_.queries * c_.heads) + 8;
  const auto rounded = [&](double value, double error) { return error + round * (std::abs(value) + error) + 1e-37; };
  for (int64_t b = 0; b < c_.batch; ++b)
    for (int64_t h = 0; h < c_.heads; ++h) {
      const int64_t g = h * c_.kv_heads / c_.heads;
      for (int64_t t = 0; t < c_.queries; ++t) {
        const int64_t first = first_[static_cast<size_t>(b * c_.queries + t)];
        const int64_t end = kept(b, h) ? end_[static_cast<size_t>(b * c_.queries + t)] : first;
        const auto count = static_cast<size_t>(std::max<int64_t>(0, end - first));
        std::vector<double> p(count), dp(count), score_error(count), dp_error(count);
        double largest = -std::numeric_limits<double>::infinity(), sum = 0, delta = 0, delta_error = 0, worst_score = 0;
        for (size_t j = 0; j < count; ++j) {
          const int64_t key = first + static_cast<int64_t>(j);
          for (int64_t i = 0; i < c_.key_dim; ++i) {
            const double product = scale * t_.q.at(b, t, h, i) * t_.k.at(b, key, g, i);
            p[j] += product;
            score_error[j] += (static_cast<double>(c_.key_dim) + 8) * u * std::abs(product);
          }
          for (int64_t i = 0; i < c_.value_dim; ++i) {
            const double product = t_.d_out.at(b, t, h, i) * t_.v.at(b, key, g, i);
            dp[j] += product;
            dp_error[j] += (static_cast<double>(c_.value_dim) + 4) * u * std::abs(product);
          }
          largest = std::max(largest, p[j]);
        }
        for (size_t j = 0; j < count; ++j) {
          worst_score = std::max(worst_score, score_error[j] + 4 * u * (std::abs(largest) + std::abs(p[j])));
          sum += p[j] = std::exp(p[j] - largest);
        }
        const double lse = largest + std::log(sum);
        lse_.push_back(lse);
        lse_bound_.push_back(worst_score + exp_error + (keys + 8) * u + 4 * u * std::abs(lse) + 1e-6);
        const double weight_error = 2 * worst_score + 2 * exp_error + (keys + 16) * u;
        for (auto& weight : p) weight /= sum;
        for (int64_t i = 0; i < c_.value_dim; ++i) {
          double out = 0, magnitude = 0;
          for (size_t j = 0; j < count; ++j) {
            const double product = p[j] * t_.v.at(b, first + static_cast<int64_t>(j), g, i);
            out += product;
            magnitude += std::abs(product);
          }
          const double error = rounded(out, magnitude * (weight_error + h_unit)), d_out = t_.d_out.at(b, t, h, i);
          truth_.out.set(b, t, h, i, out);
          bound_.out.set(b, t, h, i, error);
          delta += out * d_out;
          delta_error += (error + static_cast<double>(c_.value_dim) * u * std::abs(out)) * std::abs(d_out);
        }
        for (int64_t i = 0; i < c_.key_dim; ++i) truth_.dq.set(b, t, h, i, 0), bound_.dq.set(b, t, h, i, 0);
        for (size_t j = 0; j < count; ++j) {
          const int64_t key = first + static_cast<int64_t>(j);
          const double slope = scale * p[j] * (dp[j] - delta);
          const double error = scale * p[j] * (weight_error * std::abs(dp[j] - delta) + dp_error[j] + delta_error) *
                                   (1 + weight_error + h_unit) +
                               (h_unit + 4 * u) * std::abs(slope);
          for (int64_t i = 0; i < c_.key_dim; ++i) {
            const double k = t_.k.at(b, key, g, i), q = t_.q.at(b, t, h, i);
            truth_.dq.add(b, t, h, i, slope * k);
            bound_.dq.add(b, t, h, i, (error + (keys + 8) * u * std::abs(slope)) * std::abs(k));
            truth_.dk.add(b, key, g, i, slope * q);
            bound_.dk.add(b, key, g, i, (error + terms * u * std::abs(slope)) * std::abs(q));
          }
          for (int64_t i = 0; i < c_.value_dim; ++i) {
            const double product = p[j] * t_.d_out.at(b, t, h, i);
            truth_.dv.add(b, key, g, i, product);
            bound_.dv.add(b, key, g, i, std::abs(product) * (weight_error + h_unit + terms * u));
          }
        }
      }
    }
  for (auto member : {&Tensors<double>::dq, &Tensors<double>::dk, &Tensors<double>::dv}) {
    auto& bounds = (bound_.*member).values;
    for (size_t i = 0; i < bounds.size(); ++i) bounds[i] = rounded((truth_.*member).values[i], bounds[i]);
  }
}

template <class Storage>
double FlashRun<Storage>::worst(Tensor<Storage> Tensors<Storage>::*found_member,
                                Tensor<double> Tensors<double>::*truth_member) const {
  const auto& found = t_.*found_member;
  const auto &truth = truth_.*truth_member, &bound = bound_.*truth_member;
  double worst = 0;
  for (int64_t b = 0; b < found.batch; ++b)
    for (int64_t row = 0; row < found.rows; ++row)
      for (int64_t head = 0; head <= found.heads; ++head)
        for (int64_t i = 0; i < found.width; ++i) {
          const bool is_beside = head == found.heads;
          if (is_beside && b + 1 == found.batch && row + 1 == found.rows)
            continue;  // there is no gap after the last row
          const double x = found.at(b, row, head, i);
          if (is_beside) {
            EXPECT_EQ(x, from_storage(to_storage(99, Storage{}))) << "written outside a row";
          } else {
            const double error = std::abs(x - truth.at(b, row, head, i)) / bound.at(b, row, head, i);
            if (!(error <= worst)) worst = error;  // NaN counts as worst
          }
        }
  return worst;
}

template <class Storage>
double FlashRun<Storage>::worst_lse() const {
  double worst = 0;
  for (size_t i = 0; i < lse_.size(); ++i) {
    const double found = t_.lse[i];
    if (std::isinf(lse_[i])) {
      EXPECT_EQ(found, -std::numeric_limits<double>::infinity());
    } else if (const double error = std::abs(found - lse_[i]) / lse_bound_[i]; !(error <= worst)) {
      worst = error;
    }
  }
  return worst;
}

/// Errors as shares of their bounds.
struct Errors {
  double out, dq, dk, dv, lse;
};

template <class Storage>
Errors errors_of(const Case& c, const flash::Kernels& kernels, int threads) {
  FlashRun<Storage> run(c, kernels, threads);
  run.compute_truth();
  using Found = Tensors<Storage>;
  using Truth = Tensors<double>;
  return {run.worst(&Found::out, &Truth::out), run.worst(&Found::dq, &Truth::dq), run.worst(&Found::dk, &Truth::dk),
          run.worst(&Found::dv, &Truth::dv), run.worst_lse()};
}

}  // namespace prism
