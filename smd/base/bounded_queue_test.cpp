#include "smd/base/bounded_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace smd {
namespace {

constexpr std::chrono::seconds kLong{60};

TEST(BoundedQueue, keeps_the_order_and_drains_after_close) {
  BoundedQueue<int> queue(100);
  EXPECT_TRUE(queue.push(1, 1, kLong));
  EXPECT_TRUE(queue.push(2, 1, kLong));
  queue.close();
  EXPECT_FALSE(queue.push(3, 1, kLong));
  EXPECT_EQ(queue.pop()->first, 1);
  EXPECT_EQ(queue.pop()->first, 2);
  EXPECT_FALSE(queue.pop().has_value());
}

TEST(BoundedQueue, admits_one_item_heavier_than_the_limit) {
  BoundedQueue<int> queue(10);
  EXPECT_TRUE(queue.push(1, 1000, kLong));
  EXPECT_EQ(queue.peak(), 1000u);
}

TEST(BoundedQueue, never_holds_more_than_its_limit) {
  BoundedQueue<int> queue(10);
  constexpr int kItems = 2000;
  std::jthread producer([&] {
    for (int i = 0; i < kItems; ++i) EXPECT_TRUE(queue.push(i, 3, kLong));
    queue.close();
  });
  int expected = 0;
  while (auto item = queue.pop()) {
    EXPECT_EQ(item->first, expected++);
    queue.done(item->second);
  }
  EXPECT_EQ(expected, kItems);
  EXPECT_LE(queue.peak(), 10u);
}

TEST(BoundedQueue, gives_items_to_a_consumer_that_looks_by_itself_or_is_asleep) {
  BoundedQueue<int> queue(100);
  std::vector<int> taken;
  std::jthread consumer([&] {
    while (auto item = queue.pop()) {
      taken.push_back(item->first);
      queue.done(item->second);
    }
  });
  const auto push_after = [&](int item, std::chrono::milliseconds pause) {
    std::this_thread::sleep_for(pause);
    EXPECT_TRUE(queue.push(item, 1, kLong));
  };
  push_after(0, std::chrono::milliseconds(0));
  push_after(1, std::chrono::milliseconds(2));   // it looks again soon
  push_after(2, std::chrono::milliseconds(50));  // it has gone to sleep
  queue.close();
  consumer.join();
  EXPECT_EQ(taken, (std::vector<int>{0, 1, 2}));
}

TEST(BoundedQueue, wakes_a_consumer_that_looks_by_itself_when_there_is_no_room) {
  BoundedQueue<int> queue(1);
  std::jthread consumer([&] {
    while (auto item = queue.pop()) queue.done(item->second);
  });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(queue.push(i, 1, kLong));
  queue.close();
}

TEST(BoundedQueue, gives_up_when_no_room_comes_in_time) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.push(1, 1, kLong));
  EXPECT_FALSE(queue.push(2, 1, std::chrono::milliseconds(1)));
  EXPECT_EQ(queue.pop()->first, 1);
  queue.done(1);
  EXPECT_TRUE(queue.push(3, 1, std::chrono::milliseconds(1)));
}

TEST(BoundedQueue, close_wakes_a_waiting_producer) {
  BoundedQueue<int> queue(1);
  EXPECT_TRUE(queue.push(1, 1, kLong));
  std::atomic<bool> pushed{true};
  std::jthread producer([&] { pushed = queue.push(2, 1, kLong); });
  queue.close();
  producer.join();
  EXPECT_FALSE(pushed);
}

}  // namespace
}  // namespace smd
