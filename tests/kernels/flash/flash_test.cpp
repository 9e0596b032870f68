// The flash kernels of every instruction set against the definition in double precision, on raw memory.
#include "prism/kernels/flash/flash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <ostream>
#include <vector>

#include "prism/core/random.h"
#include "prism/kernels/simd/isa.h"
#include "tests/kernels/bfloat16.h"

namespace prism {
namespace {

struct Case {
  int64_t batch = 1, queries = 7, keys = 7, heads = 1, kv_heads = 1, key_dim = 8, value_dim = 8;
  int64_t document = 0;      ///< keys of a document; 0: one document
  double magnitude = 1;      ///< of queries, so of scores
  bool drop_a_head = false;  ///< the second one
  bool drop_a_key = false;   ///< in what the kernels are told, not in the truth: a fault
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << "B" << c.batch << " T" << c.queries << " S" << c.keys << " H" << c.heads << " G" << c.kv_heads << " D"
             << c.key_dim << " E" << c.value_dim << " document " << c.document << " magnitude " << c.magnitude;
}

uint16_t to_storage(double x, uint16_t) {
  return narrow(static_cast<float>(x));
}
float to_storage(double x, float) {
  return static_cast<float>(x);
}
double from_storage(uint16_t x) {
  return widen(x);
}
double from_storage(float x) {
  return x;
}

/// A [batch, row, head, width] tensor with room between its rows, as a slice of fused rows has.
template <class Storage>
struct Tensor {
  int64_t batch, rows, heads, width, row_stride;
  std::vector<Storage> values;

  Tensor(int64_t batch_size, int64_t row_count, int64_t head_count, int64_t head_width)
      : batch(batch_size),
        rows(row_count),
        heads(head_count),
        width(head_width),
        row_stride((head_count + 1) * head_width),
        values(static_cast<size_t>(batch_size * row_count * row_stride), to_storage(99, Storage{})) {}

  void fill(Random& random, double magnitude) {
    for (auto& value : values) {
      const double normal =
          std::sqrt(-2 * std::log(1 - random.uniform())) * std::cos(6.283185307179586 * random.uniform());
      value = to_storage(magnitude * normal, Storage{});
    }
  }
  size_t index(int64_t b, int64_t row, int64_t head, int64_t i) const {
    return static_cast<size_t>((b * rows + row) * row_stride + head * width + i);
  }
  double at(int64_t b, int64_t row, int64_t head, int64_t i) const {
    return from_storage(values[index(b, row, head, i)]);
  }
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
  std::vector<float> lse;
};

/// Inputs, what each query sees, and the results of one instruction set.
template <class Storage>
class FlashRun {
 public:
  FlashRun(const Case& c, const flash::Kernels& kernels, int threads) : c_(c), t_(c), truth_(c) {
    Random random(7);
    t_.q.fill(random, c.magnitude);
    t_.k.fill(random, 1);
    t_.v.fill(random, 1);
    t_.d_out.fill(random, 1);
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
    run(kernels);
  }

  /// The last query of every sequence but the first sees nothing, and with documents each query its own alone.
  void choose_intervals() {
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
    // The middle query loses its last key.
    if (c_.drop_a_key) --seen_[static_cast<size_t>(c_.queries / 2)];
  }

  void run(const flash::Kernels& kernels) {
    flash::Forward f(problem_);
    const auto tasks = flash::plan(f);
    const auto scratch = make_scratch(std::max(kernels.forward_scratch(f), kernels.backward_scratch(f)));
    f.q = t_.q.matrix(), f.k = t_.k.matrix(), f.v = t_.v.matrix(), f.out = t_.out.matrix();
    f.lse_BHT = t_.lse.data();
    f.scratch = scratch.get();
    f.tasks = tasks.data();
    f.task_count = static_cast<int64_t>(tasks.size());
    kernels.forward(f);
    flash::Backward b(problem_);
    b.q = f.q, b.k = f.k, b.v = f.v, b.out = f.out, b.d_out = t_.d_out.matrix();
    b.dq = t_.dq.matrix(), b.dk = t_.dk.matrix(), b.dv = t_.dv.matrix();
    b.lse_BHT = t_.lse.data();
    b.scratch = scratch.get();
    kernels.backward(b);
  }

  void compute_truth();
  const Tensors<Storage>& results() const { return t_; }
  const Tensors<float>& truth() const { return truth_; }
  bool kept(int64_t b, int64_t h) const { return kept_[static_cast<size_t>(b * c_.heads + h)]; }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  static std::unique_ptr<std::byte, Free> make_scratch(size_t bytes) {
    return std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)));
  }

  Case c_;
  Tensors<Storage> t_;
  Tensors<float> truth_;
  std::vector<int32_t> first_, end_, seen_;  ///< the truth, and what the kernels are told
  std::unique_ptr<bool[]> kept_;
  flash::Problem problem_;
};

/// The definition, element by element; gradients by the formulas of the softmax.
template <class Storage>
void FlashRun<Storage>::compute_truth() {
  const double scale = problem_.scale;
  std::vector<double> dk(truth_.dk.values.size()), dv(truth_.dv.values.size());
  for (int64_t b = 0; b < c_.batch; ++b)
    for (int64_t h = 0; h < c_.heads; ++h) {
      const int64_t g = h * c_.kv_heads / c_.heads;
      for (int64_t t = 0; t < c_.queries; ++t) {
        const int64_t first = first_[static_cast<size_t>(b * c_.queries + t)];
        const int64_t end = kept(b, h) ? end_[static_cast<size_t>(b * c_.queries + t)] : first;
        std::vector<double> p(static_cast<size_t>(c_.keys)), dp(p);
        double largest = -std::numeric_limits<double>::infinity(), sum = 0, delta = 0;
        for (int64_t j = first; j < end; ++j) {
          auto& score = p[static_cast<size_t>(j)];
          for (int64_t i = 0; i < c_.key_dim; ++i) score += t_.q.at(b, t, h, i) * t_.k.at(b, j, g, i);
          score *= scale;
          largest = std::max(largest, score);
        }
        for (int64_t j = first; j < end; ++j)
          sum += p[static_cast<size_t>(j)] = std::exp(p[static_cast<size_t>(j)] - largest);
        truth_.lse[static_cast<size_t>((b * c_.heads + h) * c_.queries + t)] =
            static_cast<float>(largest + std::log(sum));
        std::vector<double> out(static_cast<size_t>(c_.value_dim)), dq(static_cast<size_t>(c_.key_dim));
        for (int64_t j = first; j < end; ++j) {
          p[static_cast<size_t>(j)] /= sum;
          for (int64_t i = 0; i < c_.value_dim; ++i) {
            out[static_cast<size_t>(i)] += p[static_cast<size_t>(j)] * t_.v.at(b, j, g, i);
            dp[static_cast<size_t>(j)] += t_.d_out.at(b, t, h, i) * t_.v.at(b, j, g, i);
            dv[truth_.dv.index(b, j, g, i)] += p[static_cast<size_t>(j)] * t_.d_out.at(b, t, h, i);
          }
          delta += p[static_cast<size_t>(j)] * dp[static_cast<size_t>(j)];
        }
        for (int64_t j = first; j < end; ++j) {
          const double slope = scale * p[static_cast<size_t>(j)] * (dp[static_cast<size_t>(j)] - delta);
          for (int64_t i = 0; i < c_.key_dim; ++i) {
            dq[static_cast<size_t>(i)] += slope * t_.k.at(b, j, g, i);
            dk[truth_.dk.index(b, j, g, i)] += slope * t_.q.at(b, t, h, i);
          }
        }
        for (int64_t i = 0; i < c_.value_dim; ++i)
          truth_.out.values[truth_.out.index(b, t, h, i)] = static_cast<float>(out[static_cast<size_t>(i)]);
        for (int64_t i = 0; i < c_.key_dim; ++i)
          truth_.dq.values[truth_.dq.index(b, t, h, i)] = static_cast<float>(dq[static_cast<size_t>(i)]);
      }
    }
  for (size_t i = 0; i < dk.size(); ++i) truth_.dk.values[i] = static_cast<float>(dk[i]);
  for (size_t i = 0; i < dv.size(); ++i) truth_.dv.values[i] = static_cast<float>(dv[i]);
}

/// Largest difference over the elements that belong to the tensor; what lies between its rows must be as it was.
template <class Storage>
double difference(const Tensor<Storage>& found, const Tensor<float>& truth) {
  double worst = 0;
  for (int64_t b = 0; b < found.batch; ++b)
    for (int64_t row = 0; row < found.rows; ++row)
      for (int64_t head = 0; head <= found.heads; ++head)
        for (int64_t i = 0; i < found.width; ++i) {
          const double x = found.at(b, row, head, i);
          if (head == found.heads) {
            EXPECT_EQ(x, from_storage(to_storage(99, Storage{}))) << "written beside a row";
          } else {
            const double error = std::abs(x - truth.at(b, row, head, i));
            if (!(error <= worst)) worst = error;  // a NaN is the worst
          }
        }
  return worst;
}

template <class Storage>
double largest_of(const Tensor<Storage>& tensor) {
  double most = 0;
  for (const auto value : tensor.values) most = std::max(most, std::abs(from_storage(value)));
  return most;
}

/// What out may differ by. Scores carry D eps of the sum of |q k|, exp its own error, sums over keys S eps; with
/// bfloat16 the weights are rounded, and out.
template <class Storage>
double out_tolerance(const Case& c, const Tensors<Storage>& t) {
  const auto keys = static_cast<double>(c.keys), dim = static_cast<double>(c.key_dim);
  const double eps = 0x1p-24, exp_error = sizeof(Storage) == 2 ? 2.6e-6 : 5e-7;
  const double scores = largest_of(t.q) * largest_of(t.k) * std::sqrt(dim);  // scale D max|q| max|k|
  const double weights = 2 * ((dim + 8) * eps * scores + exp_error) + (sizeof(Storage) == 2 ? 0x1p-9 : 0);
  return (weights + keys * eps + (sizeof(Storage) == 2 ? 0x1p-9 : eps)) * largest_of(t.v);
}

/// Gradients carry the same errors, and dS is rounded once more.
template <class Storage>
double gradient_tolerance(const Tensor<float>& truth) {
  return (sizeof(Storage) == 2 ? 0x1p-5 : 0x1p-16) * std::max(largest_of(truth), 1.0);
}

template <class Storage>
void expect_equal(const Case& c, const flash::Kernels& kernels, int threads) {
  SCOPED_TRACE(testing::Message() << kernels.name << " " << sizeof(Storage) << " bytes, " << c);
  FlashRun<Storage> run(c, kernels, threads);
  run.compute_truth();
  const auto& found = run.results();
  const auto& truth = run.truth();
  EXPECT_LE(difference(found.out, truth.out), out_tolerance(c, found));
  EXPECT_LE(difference(found.dq, truth.dq), gradient_tolerance<Storage>(truth.dq));
  EXPECT_LE(difference(found.dk, truth.dk), gradient_tolerance<Storage>(truth.dk));
  EXPECT_LE(difference(found.dv, truth.dv), gradient_tolerance<Storage>(truth.dv));
  for (size_t i = 0; i < truth.lse.size(); ++i) {
    if (std::isinf(truth.lse[i]) || std::isnan(truth.lse[i])) {
      EXPECT_EQ(found.lse[i], -std::numeric_limits<float>::infinity());
    } else {
      EXPECT_NEAR(found.lse[i], truth.lse[i], 4e-6 * (1 + std::abs(truth.lse[i])));
    }
  }
}

std::vector<const flash::Kernels*> all_kernels() {
  std::vector<const flash::Kernels*> list;
  for (const Isa isa : {Isa::avx2, Isa::avx512, Isa::avx512_bf16})
    if (isa <= current_isa()) list.push_back(flash::kernels_of(isa));
  return list;
}

void expect_equal_everywhere(const Case& c, int threads = 2) {
  for (const auto* kernels : all_kernels()) {
    expect_equal<uint16_t>(c, *kernels, threads);
    expect_equal<float>(c, *kernels, threads);
  }
}

TEST(Flash, EqualsTheDefinitionAtEveryWidth) {
  for (const int64_t dim : {8, 16, 24, 40, 64, 72, 96, 128, 136, 192, 256, 384, 512})
    expect_equal_everywhere({.queries = 19, .keys = 43, .heads = 2, .kv_heads = 2, .key_dim = dim, .value_dim = dim});
  expect_equal_everywhere({.queries = 30, .keys = 30, .key_dim = 40, .value_dim = 200});
  expect_equal_everywhere({.queries = 30, .keys = 30, .key_dim = 200, .value_dim = 8});
}

TEST(Flash, EqualsTheDefinitionAcrossTilesAndBlocks) {
  expect_equal_everywhere({.queries = 300, .keys = 300, .heads = 2, .kv_heads = 1, .key_dim = 16, .value_dim = 16});
  expect_equal_everywhere({.queries = 100, .keys = 600, .key_dim = 24, .value_dim = 24});
  expect_equal_everywhere({.queries = 97, .keys = 530, .key_dim = 264, .value_dim = 264});
  expect_equal_everywhere({.queries = 1, .keys = 1});
  expect_equal_everywhere({.queries = 1, .keys = 257, .key_dim = 32, .value_dim = 32});
  expect_equal_everywhere({.queries = 12, .keys = 5});  // the first queries see no key
}

TEST(Flash, EqualsTheDefinitionForFewQueriesOfManyHeads) {
  for (const int64_t heads : {1, 3, 8, 9, 11, 16, 32, 33})
    expect_equal_everywhere({.batch = 2, .queries = 1, .keys = 700, .heads = heads, .key_dim = 40, .value_dim = 72});
  for (const int64_t queries : {2, 5, 8, 9})
    expect_equal_everywhere(
        {.queries = queries, .keys = 1100, .heads = 6, .kv_heads = 2, .key_dim = 64, .value_dim = 264});
  expect_equal_everywhere(
      {.batch = 2, .queries = 4, .keys = 1400, .heads = 6, .kv_heads = 2, .document = 401, .drop_a_head = true});
}

TEST(Flash, ServesDocumentsHeadsInGroupsAndHeadsThatAreNotKept) {
  expect_equal_everywhere(
      {.batch = 2, .queries = 90, .keys = 90, .heads = 6, .kv_heads = 2, .document = 37, .drop_a_head = true});
  expect_equal_everywhere(
      {.batch = 9, .queries = 20, .keys = 20, .heads = 4, .kv_heads = 2, .key_dim = 24, .value_dim = 24});
  expect_equal_everywhere({.queries = 300, .keys = 700, .heads = 2, .key_dim = 16, .value_dim = 16, .document = 150});
  for (const int threads : {1, 2})  // backwards by heads, by tiles
    expect_equal_everywhere(
        {.queries = 130, .keys = 520, .heads = 4, .kv_heads = 4, .document = 70, .drop_a_head = true}, threads);
}

TEST(Flash, StandsLargeScores) {
  // Scores of about +-80 on the average row: differences that a softmax without its largest score would overflow on.
  expect_equal_everywhere({.queries = 40, .keys = 300, .key_dim = 64, .value_dim = 64, .magnitude = 30});
  expect_equal_everywhere({.queries = 40, .keys = 300, .key_dim = 64, .value_dim = 64, .magnitude = 0});  // all equal
}

TEST(Flash, ExceedsItsToleranceWhenOneKeyIsDropped) {
  const Case c{.queries = 40, .keys = 60, .key_dim = 32, .value_dim = 32, .drop_a_key = true};
  for (const auto* kernels : all_kernels()) {
    FlashRun<uint16_t> half(c, *kernels, 1);
    half.compute_truth();
    EXPECT_GT(difference(half.results().out, half.truth().out), out_tolerance(c, half.results()));
    FlashRun<float> single(c, *kernels, 1);
    single.compute_truth();
    EXPECT_GT(difference(single.results().out, single.truth().out), out_tolerance(c, single.results()));
    EXPECT_GT(difference(single.results().dq, single.truth().dq), gradient_tolerance<float>(single.truth().dq));
    EXPECT_GT(difference(single.results().dv, single.truth().dv), gradient_tolerance<float>(single.truth().dv));
  }
}

template <class Storage>
void expect_same_bits(const Case& c, const flash::Kernels& kernels) {
  const FlashRun<Storage> one(c, kernels, 1), three(c, kernels, 3);
  for (const auto member :
       {&Tensors<Storage>::out, &Tensors<Storage>::dq, &Tensors<Storage>::dk, &Tensors<Storage>::dv})
    EXPECT_TRUE((one.results().*member).values == (three.results().*member).values) << kernels.name << " " << c;
  EXPECT_TRUE(one.results().lse == three.results().lse) << kernels.name << " " << c;
}

TEST(Flash, GivesTheSameBitsForEveryNumberOfThreads) {
  // The last one backwards by heads on one thread, by tiles on three.
  for (const auto* kernels : all_kernels())
    for (const Case& c :
         {Case{.queries = 290, .keys = 700, .heads = 2, .kv_heads = 1, .key_dim = 24, .value_dim = 24},
          Case{.batch = 20, .queries = 30, .keys = 30},
          Case{.batch = 2, .queries = 200, .keys = 600, .heads = 4, .kv_heads = 2, .drop_a_head = true}}) {
      expect_same_bits<uint16_t>(c, *kernels);
      expect_same_bits<float>(c, *kernels);
    }
}

TEST(SlowFlash, EqualsTheDefinitionForAThousandRandomShapes) {
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
    expect_equal_everywhere(c, 1 + i % 3);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace prism
