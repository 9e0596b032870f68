#include "prism/data/ordered_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>

namespace prism {
namespace {

/// 0, 1, ..., count - 1.
std::function<std::optional<int>()> count_to(int count, std::atomic<int>* read = nullptr) {
  return [=, next = 0]() mutable -> std::optional<int> {
    if (next == count) return std::nullopt;
    if (read != nullptr) ++*read;
    return next++;
  };
}

TEST(OrderedPipeline, HandsItemsOverInTheirOrderWhateverTheThreads) {
  for (const int threads : {1, 2, 7}) {
    OrderedPipeline<int> pipeline(
        count_to(500),
        [](int& item) {
          // Later items often finish first.
          std::this_thread::sleep_for(std::chrono::microseconds(item % 5 == 0 ? 200 : 0));
          item *= 2;
        },
        threads);
    for (int i = 0; i < 500; ++i) ASSERT_EQ(pipeline.next(), 2 * i);
    EXPECT_EQ(pipeline.next(), std::nullopt);
    EXPECT_EQ(pipeline.next(), std::nullopt);
  }
}

TEST(OrderedPipeline, EndsAtOnceWithoutItems) {
  OrderedPipeline<int> pipeline(
      count_to(0), [](int&) {}, 3);
  EXPECT_EQ(pipeline.next(), std::nullopt);
}

TEST(OrderedPipeline, ReadsNoFurtherAheadThanItMay) {
  std::atomic<int> read = 0;
  OrderedPipeline<int> pipeline(
      count_to(1000, &read), [](int&) {}, 2);
  ASSERT_EQ(pipeline.next(), 0);
  // Four items per thread, and room for one more since the first was returned.
  const int most = 2 * 4 + 1;
  for (int patience = 0; patience < 500 && read < most; ++patience)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(read, most);
}

TEST(OrderedPipeline, ThrowsAFailureOfTheWorkInItsItemsPlace) {
  OrderedPipeline<int> pipeline(
      count_to(10),
      [](int& item) {
        if (item == 4) throw std::runtime_error("four");
      },
      3);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(pipeline.next(), i);
  EXPECT_THROW(pipeline.next(), std::runtime_error);
}

TEST(OrderedPipeline, ThrowsAFailureOfTheReadingAfterTheItemsBeforeIt) {
  OrderedPipeline<int> pipeline(
      [read = count_to(3)]() mutable {
        auto item = read();
        if (!item) throw std::runtime_error("cut short");
        return item;
      },
      [](int& item) { item += 10; }, 2);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(pipeline.next(), i + 10);
  EXPECT_THROW(pipeline.next(), std::runtime_error);
}

TEST(OrderedPipeline, StopsWhenItIsLeftEarly) {
  std::atomic<int> read = 0;
  {
    OrderedPipeline<int> pipeline(
        count_to(1'000'000'000, &read), [](int&) {}, 2);
    pipeline.next();
  }
  EXPECT_LT(read, 20);
}

}  // namespace
}  // namespace prism
