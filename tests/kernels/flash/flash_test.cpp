// The flash kernels of every instruction set against the definition in double precision, on raw memory.
#include "prism/kernels/flash/flash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <ostream>
#include <vector>

#include "prism/core/random.h"
#include "prism/kernels/simd/isa.h"
#include "tests/kernels/bfloat16.h"
#include "tests/kernels/guarded.h"

namespace prism {
namespace {

struct Case {
  int64_t batch = 1, queries = 7, keys = 7, heads = 1, kv_heads = 1, key_dim = 8, value_dim = 8;
  int64_t document = 0;      ///< keys of a document; 0: one document
  bool scattered = false;    ///< each query sees a different interval; many are short, some are empty
  double magnitude = 1;      ///< of queries, and thus of scores
  bool one_hot = false;      ///< row r of each input is unit vector r modulo its width
  bool drop_a_head = false;  ///< drops the second head
  bool drop_a_key = false;   ///< drops a key from the kernels' input but not from the truth: a fault
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "B" << c.batch << " T" << c.queries << " S" << c.keys << " H" << c.heads << " G" << c.kv_heads << " D"
             << c.key_dim << " E" << c.value_dim << " document " << c.document << " magnitude " << c.magnitude
             << (c.one_hot ? " one-hot" : "");
}

uint16_t to_storage(double x, uint16_t) {
  return narrow(static_cast<float>(x));
}
float to_storage(double x, float) {
  return static_cast<float>(x);
}
double to_storage(double x, double) {
  return x;
}
double from_storage(double x) {
  return x;
}
double from_storage(uint16_t x) {
  return widen(x);
}
double from_storage(float x) {
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

template <class Storage>
void expect_equal(const Case& c, const flash::Kernels& kernels, int threads) {
  SCOPED_TRACE(testing::Message() << kernels.name << " " << sizeof(Storage) << " bytes, " << c);
  const Errors errors = errors_of<Storage>(c, kernels, threads);
  EXPECT_LE(errors.out, 1);
  EXPECT_LE(errors.dq, 1);
  EXPECT_LE(errors.dk, 1);
  EXPECT_LE(errors.dv, 1);
  EXPECT_LE(errors.lse, 1);
}

class Flash : public testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (current_isa() < GetParam()) GTEST_SKIP() << "needs a processor with " << isa_name(GetParam());
  }
  static const flash::Kernels& kernels() { return *flash::kernels_of(GetParam()); }
  static void expect_equal_in_every_type(const Case& c, int threads = 2) {
    expect_equal<uint16_t>(c, kernels(), threads);
    expect_equal<float>(c, kernels(), threads);
  }
};

class SlowFlash : public Flash {};

TEST_P(Flash, EqualsTheDefinitionAtEveryWidth) {
  for (const int64_t dim : {8, 16, 24, 40, 64, 72, 96, 128, 136, 192, 256, 384, 512})
    expect_equal_in_every_type(
        {.queries = 19, .keys = 43, .heads = 2, .kv_heads = 2, .key_dim = dim, .value_dim = dim});
  expect_equal_in_every_type({.queries = 30, .keys = 30, .key_dim = 40, .value_dim = 200});
  expect_equal_in_every_type({.queries = 30, .keys = 30, .key_dim = 200, .value_dim = 8});
}

TEST_P(Flash, EqualsTheDefinitionAcrossTilesAndBlocks) {
  expect_equal_in_every_type({.queries = 300, .keys = 300, .heads = 2, .kv_heads = 1, .key_dim = 16, .value_dim = 16});
  expect_equal_in_every_type({.queries = 100, .keys = 600, .key_dim = 24, .value_dim = 24});
  expect_equal_in_every_type({.queries = 97, .keys = 530, .key_dim = 264, .value_dim = 264});
  expect_equal_in_every_type({.queries = 1, .keys = 1});
  expect_equal_in_every_type({.queries = 1, .keys = 257, .key_dim = 32, .value_dim = 32});
  expect_equal_in_every_type({.queries = 12, .keys = 5});  // the first queries see no key
}

TEST_P(Flash, EqualsTheDefinitionForFewQueriesOfManyHeads) {
  for (const int64_t heads : {1, 3, 8, 9, 11, 16, 32, 33})
    expect_equal_in_every_type({.batch = 2, .queries = 1, .keys = 700, .heads = heads, .key_dim = 40, .value_dim = 72});
  for (const int64_t queries : {2, 5, 8, 9})
    expect_equal_in_every_type(
        {.queries = queries, .keys = 1100, .heads = 6, .kv_heads = 2, .key_dim = 64, .value_dim = 264});
  expect_equal_in_every_type(
      {.batch = 2, .queries = 4, .keys = 1400, .heads = 6, .kv_heads = 2, .document = 401, .drop_a_head = true});
}

TEST_P(Flash, ServesDocumentsHeadsInGroupsAndHeadsThatAreNotKept) {
  expect_equal_in_every_type(
      {.batch = 2, .queries = 90, .keys = 90, .heads = 6, .kv_heads = 2, .document = 37, .drop_a_head = true});
  expect_equal_in_every_type(
      {.batch = 9, .queries = 20, .keys = 20, .heads = 4, .kv_heads = 2, .key_dim = 24, .value_dim = 24});
  expect_equal_in_every_type(
      {.queries = 300, .keys = 700, .heads = 2, .key_dim = 16, .value_dim = 16, .document = 150});
  for (const int threads : {1, 2})  // the backward pass splits work by heads, by tiles
    expect_equal_in_every_type(
        {.queries = 130, .keys = 520, .heads = 4, .kv_heads = 4, .document = 70, .drop_a_head = true}, threads);
}

TEST_P(Flash, EqualsTheDefinitionForAnyIntervals) {
  expect_equal_in_every_type({.batch = 2, .queries = 50, .keys = 61, .heads = 6, .kv_heads = 2, .scattered = true});
  expect_equal_in_every_type({.queries = 203, .keys = 590, .key_dim = 24, .value_dim = 40, .scattered = true}, 3);
  expect_equal_in_every_type({.queries = 101, .keys = 300, .key_dim = 136, .value_dim = 264, .scattered = true});
  expect_equal_in_every_type({.batch = 3, .queries = 5, .keys = 1700, .heads = 4, .kv_heads = 2, .scattered = true});
}

TEST_P(Flash, StandsLargeScores) {
  // Scores of about +-80 on the average row, on which a softmax that does not subtract its largest score overflows.
  expect_equal_in_every_type({.queries = 40, .keys = 300, .key_dim = 64, .value_dim = 64, .magnitude = 30});
  expect_equal_in_every_type(
      {.queries = 40, .keys = 300, .key_dim = 64, .value_dim = 64, .magnitude = 0});  // all equal
}

TEST_P(Flash, EqualsTheDefinitionForOneHotInputs) {
  for (const double magnitude : {1.0, 100.0, 1e4, 1e10})
    for (const int64_t queries : {3, 40, 130})
      expect_equal_in_every_type({.queries = queries,
                                  .keys = 300,
                                  .heads = 2,
                                  .key_dim = 64,
                                  .value_dim = 40,
                                  .magnitude = magnitude,
                                  .one_hot = true});
}

template <class Storage>
void expect_fault_found(const Case& c, const flash::Kernels& kernels) {
  SCOPED_TRACE(testing::Message() << kernels.name << " " << sizeof(Storage) << " bytes, " << c);
  const Errors errors = errors_of<Storage>(c, kernels, 2);
  EXPECT_GT(errors.out, 1);
  EXPECT_GT(errors.dq, 1);
  EXPECT_GT(errors.dk, 1);
  EXPECT_GT(errors.dv, 1);
}

TEST_P(Flash, ExceedsItsBoundWhenOneKeyIsDropped) {
  const Case few{.queries = 40, .keys = 60, .key_dim = 32, .value_dim = 32, .drop_a_key = true};
  // Large scores, so that one key of 300 has enough weight to show in bfloat16.
  const Case many{.queries = 300, .keys = 300, .key_dim = 16, .value_dim = 16, .magnitude = 2, .drop_a_key = true};
  const Case tiles{.queries = 97, .keys = 530, .key_dim = 24, .value_dim = 24, .drop_a_key = true};
  for (const Case& c : {few, many}) expect_fault_found<uint16_t>(c, kernels());
  for (const Case& c : {few, many, tiles}) expect_fault_found<float>(c, kernels());
}

template <class Storage>
void expect_same_bits(const Case& c, const flash::Kernels& kernels) {
  const FlashRun<Storage> one(c, kernels, 1), three(c, kernels, 3);
  for (const auto member :
       {&Tensors<Storage>::out, &Tensors<Storage>::dq, &Tensors<Storage>::dk, &Tensors<Storage>::dv})
    EXPECT_TRUE((one.results().*member).values == (three.results().*member).values) << kernels.name << " " << c;
  EXPECT_TRUE(one.results().lse == three.results().lse) << kernels.name << " " << c;
}

TEST_P(Flash, GivesTheSameBitsForEveryNumberOfThreads) {
  // The backward pass of the last two splits work by heads on one thread, by tiles on three.
  for (const Case& c :
       {Case{.queries = 290, .keys = 700, .heads = 2, .kv_heads = 1, .key_dim = 24, .value_dim = 24},
        Case{.batch = 20, .queries = 30, .keys = 30},
        Case{.batch = 2, .queries = 200, .keys = 600, .heads = 4, .kv_heads = 2, .drop_a_head = true}}) {
    expect_same_bits<uint16_t>(c, kernels());
    expect_same_bits<float>(c, kernels());
  }
}

TEST_P(SlowFlash, EqualsTheDefinitionForAThousandRandomShapes) {
  Random random(11);
  for (int i = 0; i < 1000; ++i) {
    Case c;
    c.batch = 1 + static_cast<int64_t>(random.below(3));
    c.kv_heads = 1 + static_cast<int64_t>(random.below(2));
    c.heads = c.kv_heads * (1 + static_cast<int64_t>(random.below(3)));
    c.keys = 1 + static_cast<int64_t>(random.below(i % 10 == 0 ? 600 : 80));
    c.queries = 1 + static_cast<int64_t>(random.below(static_cast<uint64_t>(c.keys)));
    c.key_dim = 8 * (1 + static_cast<int64_t>(random.below(12)));
    c.value_dim = 8 * (1 + static_cast<int64_t>(random.below(12)));
    c.document = random.below(3) == 0 ? 1 + static_cast<int64_t>(random.below(40)) : 0;
    c.drop_a_head = c.batch * c.heads > 1 && random.below(4) == 0;
    expect_equal_in_every_type(c, 1 + i % 3);
    if (testing::Test::HasFailure()) return;
  }
}

std::string isa_title(const testing::TestParamInfo<Isa>& info) {
  switch (info.param) {
    case Isa::avx2:
      return "Avx2";
    case Isa::avx512:
      return "Avx512";
    case Isa::avx512_bf16:
      return "Avx512Bf16";
    default:
      return "AmxBf16";
  }
}

INSTANTIATE_TEST_SUITE_P(, Flash, testing::Values(Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16), isa_title);
INSTANTIATE_TEST_SUITE_P(, SlowFlash, testing::Values(Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::amx_bf16),
                         isa_title);

}  // namespace
}  // namespace prism
