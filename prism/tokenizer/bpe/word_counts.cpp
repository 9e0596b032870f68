#include "prism/tokenizer/bpe/word_counts.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/text/utf8.h"

namespace prism {
namespace {

constexpr size_t kTaskBytes = size_t{1} << 20;

/// A part of a text. The text lives as long as any of its parts.
struct Task {
  std::shared_ptr<const std::string> owner;
  std::string_view text;
};

/// Tasks in order of arrival; at most `capacity` wait.
class TaskQueue {
 public:
  explicit TaskQueue(size_t capacity) : capacity_(capacity) {}

  /// Waits for room. Returns false once the queue is closed.
  bool push(Task task) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tasks_.size() < capacity_ || closed_; });
    if (closed_) return false;
    tasks_.push_back(std::move(task));
    changed_.notify_all();
    return true;
  }
  /// Waits for a task. Returns false when the queue is closed and empty.
  bool pop(Task& task) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !tasks_.empty() || closed_; });
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
    changed_.notify_all();
    return true;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  bool closed_ = false;
};

/// Counts into its own map until the queue is closed.
class Worker {
 public:
  Worker(TaskQueue& queue, const Pretokenizer& pretokenizer)
      : pretokenizer_(pretokenizer), thread_([this, &queue] { run(queue); }) {}

  /// The counts, after the queue was closed. @throws what the worker threw.
  const WordCounts& finish() {
    if (thread_.joinable()) thread_.join();
    if (failure_) std::rethrow_exception(failure_);
    return counts_;
  }

 private:
  void run(TaskQueue& queue) {
    try {
      for (Task task; queue.pop(task);) count(task.text);
    } catch (...) {
      failure_ = std::current_exception();
      queue.close();
    }
  }

  void count(std::string_view text) {
    while (!text.empty()) {
      const size_t well_formed = std::min(find_invalid_utf8(text), text.size());
      const std::string_view part = text.substr(0, well_formed);
      PieceCursor cursor(pretokenizer_, part, matcher_);
      size_t begin = 0;
      while (cursor.next(ends_)) {
        for (const size_t end : ends_) {
          counts_.add(part.substr(begin, end - begin), 1);
          begin = end;
        }
      }
      text.remove_prefix(std::min(well_formed + 1, text.size()));
    }
  }

  const Pretokenizer& pretokenizer_;
  RegexMatcher matcher_;
  std::vector<size_t> ends_;
  WordCounts counts_;
  std::exception_ptr failure_;
  std::jthread thread_;  // last, since it uses all members above
};

/// Closes the queue on every exit from a scope, so that no worker waits forever.
struct Closing {
  TaskQueue& queue;
  ~Closing() { queue.close(); }
};

}  // namespace

void WordCounts::add(std::string_view word, int64_t count) {
  const size_t hash = std::hash<std::string_view>{}(word);
  size_t slot = hash & (slots_.size() - 1);
  for (; slots_[slot] != kEmpty; slot = (slot + 1) & (slots_.size() - 1)) {
    Entry& entry = entries_[slots_[slot]];
    if (entry.hash == hash && this->word(slots_[slot]) == word) {
      entry.count += count;
      return;
    }
  }
  PRISM_CHECK(entries_.size() < kEmpty, "train_bpe",
              "expected fewer than {} distinct words; found more; train on less text.", kEmpty);
  slots_[slot] = static_cast<uint32_t>(entries_.size());
  entries_.push_back({hash, bytes_.size(), word.size(), count});
  bytes_ += word;
  if (2 * entries_.size() > slots_.size()) grow();
}

void WordCounts::add(const WordCounts& others) {
  for (size_t i = 0; i < others.size(); ++i) add(others.word(i), others.count(i));
}

void WordCounts::grow() {
  slots_.assign(2 * slots_.size(), kEmpty);
  for (size_t i = 0; i < entries_.size(); ++i) {
    size_t slot = entries_[i].hash & (slots_.size() - 1);
    while (slots_[slot] != kEmpty) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = static_cast<uint32_t>(i);
  }
}

WordCounts count_words(const TextSupply& source, const Pretokenizer& pretokenizer, int threads,
                       const std::function<void(int64_t)>& progress) {
  TaskQueue queue(2 * static_cast<size_t>(threads));
  std::deque<Worker> workers;
  int64_t bytes = 0;
  {
    const Closing closing{queue};
    try {
      for (int i = 0; i < threads; ++i) workers.emplace_back(queue, pretokenizer);
    } catch (const std::system_error& error) {
      fail_to_start_threads(threads, error);
    }
    bool open = true;
    for (std::string text; open && source(text);) {
      bytes += static_cast<int64_t>(text.size());
      const auto owner = std::make_shared<const std::string>(std::move(text));
      for (size_t begin = 0; open && begin < owner->size();) {
        const size_t end = pretokenizer.safe_cut(*owner, std::min(begin + kTaskBytes, owner->size()));
        open = queue.push({owner, std::string_view(*owner).substr(begin, end - begin)});
        begin = end;
      }
      if (progress) progress(bytes);
      text.clear();
    }
  }
  WordCounts total;
  for (auto& worker : workers) total.add(worker.finish());
  return total;
}

}  // namespace prism
