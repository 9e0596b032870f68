#include "prism/generation/scorer.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

/// Fewer tokens in common are computed again: a sequence of their own would cost more.
constexpr int64_t kLeastShared = 8;
/// Pages of the sequences that are computed together, of what they have in common, and of those that continue it.
constexpr int64_t kMostPages = 16384 / KvCache::kPage;

/// A sequence to compute: a request, or what several requests have in common, which is kept until all have begun.
struct Job {
  int64_t request = 0;   ///< the first of them, in the order of the tree
  int64_t length = 0;    ///< tokens in common; 0: it is a single request
  int64_t children = 0;  ///< jobs that continue it and have not begun
  int64_t pages = 0;     ///< of its keys and values
  int64_t reserved = 0;  ///< pages of all its children, if they were set aside when it began
  int64_t parent = -1;   ///< the job that it continues; -1: none
  int64_t sequence = -1;
};

std::span<const int32_t> read_tokens(const ScoreRequest& request) {
  return std::span(request.tokens).first(request.tokens.size() - 1).subspan(static_cast<size_t>(request.unread));
}

/// A tree of jobs in which each pair of requests shares what it has in common, from the trunk to the leaves.
class JobTree {
 public:
  /// @param shares  false: every request is a job of its own.
  JobTree(std::span<const ScoreRequest> requests, bool shares) : requests_(requests), order_(requests.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    std::erase_if(order_, [&](int64_t i) { return of(i).predictions() == 0; });
    if (shares) {
      std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) {
        return std::ranges::lexicographical_compare(read_tokens(of(a)), read_tokens(of(b)));
      });
      for (size_t i = 1; i < order_.size(); ++i) common_.push_back(common(of(order_[i - 1]), of(order_[i])));
    } else if (!order_.empty()) {
      common_.resize(order_.size() - 1);
    }
    divide(0, order_.size(), -1, 0);
  }

  std::vector<Job> jobs;

 private:
  const ScoreRequest& of(int64_t i) const { return requests_[static_cast<size_t>(i)]; }

  /// Tokens that two requests can share: the one that the first prediction is made from is computed for each.
  static int64_t common(const ScoreRequest& a, const ScoreRequest& b) {
    if (a.decodes != b.decodes || a.unread > 0 || b.unread > 0) return 0;
    const auto first = read_tokens(a), second = read_tokens(b);
    const auto same = std::ranges::mismatch(first, second).in1 - first.begin();
    return std::min({static_cast<int64_t>(same), a.scored_from - 1, b.scored_from - 1});
  }

  /// Makes jobs of requests [begin, end) of the order, which share `shared` tokens, those of job `parent`.
  void divide(size_t begin, size_t end, int64_t parent, int64_t shared) {
    for (size_t first = begin; first < end;) {
      size_t last = first + 1;
      while (last < end && common_[last - 1] >= shared + kLeastShared) ++last;
      const bool is_leaf = last == first + 1;
      const auto job = std::ssize(jobs);
      jobs.push_back({.request = order_[first], .parent = parent});
      if (parent >= 0) ++jobs[static_cast<size_t>(parent)].children;
      if (!is_leaf) {
        const auto from = common_.begin() + static_cast<std::ptrdiff_t>(first);
        const int64_t length = *std::min_element(from, from + static_cast<std::ptrdiff_t>(last - first - 1));
        jobs[static_cast<size_t>(job)].length = length;
        divide(first, last, job, length);
      }
      first = last;
    }
  }

  std::span<const ScoreRequest> requests_;
  std::vector<int64_t> order_;   ///< of the requests
  std::vector<int64_t> common_;  ///< tokens that request i of the order shares with the one after it
};

/// Computes the jobs of a tree: those that continue others as soon as these are done, otherwise the longest first.
class Schedule {
 public:
  Schedule(Engine& engine, std::span<const ScoreRequest> requests, std::vector<Job> jobs, torch::Tensor hidden_ND)
      : engine_(engine), requests_(requests), jobs_(std::move(jobs)), hidden_ND_(std::move(hidden_ND)) {
    int64_t row = 0;
    for (const auto& each : requests_) {
      first_row_.push_back(row);
      row += each.predictions();
    }
    for (int64_t i = 0; i < std::ssize(jobs_); ++i)
      if (at(i).parent < 0) ready_.push_back(i);
    std::ranges::stable_sort(ready_, {}, [&](int64_t i) { return tokens_of(at(i)); });
    engine_.make_room(std::min(count_pages(), kMostPages));
  }
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  ~Schedule() {
    for (const auto& job : jobs_) engine_.cancel(job.sequence);
  }

  void run(const Scorer::OnStep& on_step) {
    while (!ready_.empty() || !running_.empty()) {
      submit_ready();
      const int64_t before = engine_.computed();
      const auto ended = engine_.step();
      if (on_step) on_step(engine_.computed() - before);
      for (const auto& each : ended) end(each.sequence);
    }
  }

 private:
  Job& at(int64_t job) { return jobs_[static_cast<size_t>(job)]; }
  const ScoreRequest& request_of(const Job& job) const { return requests_[static_cast<size_t>(job.request)]; }
  int64_t tokens_of(const Job& job) const {
    return job.length > 0 ? job.length : std::ssize(request_of(job).tokens) - request_of(job).unread;
  }

  /// Sets the pages of each job. @return  their sum.
  int64_t count_pages() {
    int64_t sum = 0;
    for (auto& job : jobs_) {
      job.pages = KvCache::pages_for(tokens_of(job));
      if (job.parent >= 0) at(job.parent).reserved += job.pages;
      sum += job.pages;
    }
    for (auto& job : jobs_)
      if (job.pages + job.reserved > kMostPages) job.reserved = 0;
    return sum;
  }

  void submit_ready() {
    while (!ready_.empty()) {
      const int64_t number = ready_.back();
      auto& job = at(number);
      const bool is_set_aside = job.parent >= 0 && at(job.parent).reserved > 0;
      const int64_t pages = job.reserved + (is_set_aside ? 0 : job.pages);
      if (!running_.empty() && pages_ + pages > kMostPages) return;
      pages_ += pages;
      ready_.pop_back();
      auto request = engine_request(job);
      if (job.parent < 0) {
        job.sequence = engine_.submit(std::move(request));
      } else {
        auto& parent = at(job.parent);
        job.sequence = engine_.fork(parent.sequence, std::move(request));
        if (--parent.children == 0) {
          engine_.cancel(parent.sequence);
          pages_ -= parent.pages;
        }
      }
      running_[job.sequence] = number;
    }
  }

  EngineRequest engine_request(const Job& job) const {
    const auto& request = request_of(job);
    EngineRequest made;
    if (job.length > 0) {
      made.tokens.assign(request.tokens.begin(), request.tokens.begin() + job.length);
      made.keeps = true;
    } else {
      made.tokens.assign(request.tokens.begin(), request.tokens.end() - 1);
      made.unread = request.unread;
      made.budget_tokens = request.budget_tokens;
      made.draw = job.request;
      made.hidden_from = request.scored_from - 1;
      made.take_hidden = [this, row = first_row_[static_cast<size_t>(job.request)] - made.hidden_from](
                             int64_t first, const torch::Tensor& rows_ND) {
        hidden_ND_.narrow(0, row + first, rows_ND.size(0)).copy_(rows_ND);
      };
    }
    made.decodes_prompt = request.decodes;
    return made;
  }

  void end(int64_t sequence) {
    const int64_t number = running_.at(sequence);
    running_.erase(sequence);
    if (at(number).length == 0) {
      pages_ -= at(number).pages;
      return;
    }
    for (int64_t i = std::ssize(jobs_) - 1; i > number; --i)
      if (at(i).parent == number) ready_.push_back(i);
  }

  Engine& engine_;
  std::span<const ScoreRequest> requests_;
  std::vector<Job> jobs_;
  torch::Tensor hidden_ND_;
  std::vector<int64_t> first_row_;      ///< of each request in hidden_ND_
  std::vector<int64_t> ready_;          ///< jobs that can begin; the last is the next
  std::map<int64_t, int64_t> running_;  ///< jobs by their sequences
  int64_t pages_ = 0;                   ///< of those that run or have children to begin, and those set aside
};

EngineOptions with_room_for_all(EngineOptions options) {
  options.sequences = kMostPages;
  return options;
}

}  // namespace

int64_t count_predictions(std::span<const ScoreRequest> requests) {
  int64_t count = 0;
  for (const auto& each : requests) count += each.predictions();
  return count;
}

Scorer::Scorer(Decoder decoder, EngineOptions engine)
    : decoder_(decoder), engine_(decoder, with_room_for_all(engine)) {}

torch::Tensor Scorer::hidden(std::span<const ScoreRequest> requests, const OnStep& on_step) {
  const torch::NoGradGuard no_gradients;
  for (const auto& each : requests)
    PRISM_ASSERT(each.unread >= 0 && each.scored_from > each.unread && each.predictions() >= 0, "scorer",
                 "tokens from {} of {} are scored, and {} are not read", each.scored_from, each.tokens.size(),
                 each.unread);
  auto hidden_ND = at::empty({count_predictions(requests), decoder_->config().d_model},
                             at::TensorOptions(decoder_->device()).dtype(decoder_->compute_type()));
  Schedule(engine_, requests, JobTree(requests, engine_.can_share()).jobs, hidden_ND).run(on_step);
  return hidden_ND;
}

std::vector<Score> Scorer::score(std::span<const ScoreRequest> requests, const OnStep& on_step) {
  return scores_of(requests, hidden(requests, on_step));
}

std::vector<Score> Scorer::scores_of(std::span<const ScoreRequest> requests, const torch::Tensor& hidden_ND) const {
  const auto labels_N = at::empty({hidden_ND.size(0)}, torch::kLong);
  auto* label = labels_N.mutable_data_ptr<int64_t>();
  for (const auto& each : requests) label = std::copy(each.tokens.begin() + each.scored_from, each.tokens.end(), label);
  const auto found = decoder_->head.token_scores(hidden_ND, labels_N);
  const auto losses_N = found.losses_N.to(torch::kDouble).contiguous();
  const auto* loss = losses_N.const_data_ptr<double>();
  const auto* is_top = found.is_top_N.const_data_ptr<bool>();
  std::vector<Score> scores;
  for (const auto& each : requests) {
    const int64_t count = each.predictions();
    scores.push_back({.log_likelihood = -std::accumulate(loss, loss + count, 0.0),
                      .is_greedy = std::all_of(is_top, is_top + count, [](bool top) { return top; })});
    loss += count;
    is_top += count;
  }
  return scores;
}

}  // namespace prism
