// One thread reads items, several threads process them, and they are returned in the order they were read. The result
// does not depend on the number of threads.
//
//   OrderedPipeline<Portion> pipeline(read, encode, threads);      // read() -> std::optional<Portion>
//   while (std::optional<Portion> portion = pipeline.next()) write(*portion);
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "prism/core/machine.h"

namespace prism {

template <class Item>
class OrderedPipeline {
 public:
  /// @param read     returns the next item, or std::nullopt at the end; called from one thread.
  /// @param work     modifies an item; called from `threads` threads at once.
  /// @param threads  at least 1. At most 4 items per thread are in flight, which bounds the memory.
  /// @throws FailedError if the system cannot start the threads.
  OrderedPipeline(std::function<std::optional<Item>()> read, std::function<void(Item&)> work, int threads)
      : read_(std::move(read)), work_(std::move(work)), most_(4 * static_cast<size_t>(threads)) {
    try {
      threads_.emplace_back([this] { read_all(); });
      for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work_all(); });
    } catch (const std::system_error& error) {
      stop_and_join();
      fail_to_start_threads(threads + 1, error);
    }
  }

  /// Drops items that have not been returned yet.
  ~OrderedPipeline() { stop_and_join(); }

  OrderedPipeline(const OrderedPipeline&) = delete;
  OrderedPipeline& operator=(const OrderedPipeline&) = delete;

  /// The next item; std::nullopt at the end. Rethrows what read() or work() threw, at that item's position.
  std::optional<Item> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return slots_.empty() ? read_ended_ : slots_.front().done; });
    if (slots_.empty()) return std::nullopt;
    Slot slot = std::move(slots_.front());
    slots_.pop_front();
    --taken_;
    lock.unlock();
    changed_.notify_all();
    if (slot.failure) std::rethrow_exception(slot.failure);
    return std::move(slot.item);
  }

 private:
  struct Slot {
    std::optional<Item> item;
    std::exception_ptr failure;
    bool done = false;
  };

  void stop_and_join() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void read_all() {
    for (;;) {
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stopped_ || slots_.size() < most_; });
        if (stopped_) return;
      }
      Slot slot;
      try {
        slot.item = read_();
      } catch (...) {
        slot.failure = std::current_exception();
      }
      const bool last = !slot.item;
      {
        const std::lock_guard lock(mutex_);
        slot.done = slot.failure != nullptr;
        if (slot.item || slot.failure) slots_.push_back(std::move(slot));
        read_ended_ = last;
      }
      changed_.notify_all();
      if (last) return;
    }
  }

  void work_all() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stopped_ || taken_ < slots_.size() || read_ended_; });
      if (stopped_ || taken_ >= slots_.size()) return;
      // A deque keeps its elements in place while others are added and removed at its ends.
      Slot& slot = slots_[taken_++];
      if (slot.done) continue;
      lock.unlock();
      std::exception_ptr failure;
      try {
        work_(*slot.item);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      slot.failure = failure;
      slot.done = true;
      changed_.notify_all();
    }
  }

  std::function<std::optional<Item>()> read_;
  std::function<void(Item&)> work_;
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot> slots_;  ///< in flight, in order
  size_t taken_ = 0;        ///< number of slots that a worker has begun
  bool read_ended_ = false, stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace prism
