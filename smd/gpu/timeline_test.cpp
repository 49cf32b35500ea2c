#include "smd/gpu/timeline.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace smd::gpu {
namespace {

Event event(int& place) { return &place; }

TEST(Timeline, knows_that_all_before_what_is_done_is_done) {
  int places[3];
  Timeline timeline;
  EXPECT_EQ(timeline.add(event(places[0])), 1U);
  EXPECT_EQ(timeline.add(event(places[1])), 2U);
  EXPECT_FALSE(timeline.is_done(1));
  EXPECT_EQ(timeline.newest(), std::pair(event(places[1]), uint64_t{2}));
  EXPECT_EQ(timeline.add(event(places[2])), 3U);
  timeline.set_done(2);
  EXPECT_TRUE(timeline.is_done(1));
  EXPECT_TRUE(timeline.is_done(2));
  EXPECT_FALSE(timeline.is_done(3));
}

TEST(Timeline, does_not_go_back) {
  Timeline timeline;
  timeline.set_done(7);
  timeline.set_done(3);
  EXPECT_TRUE(timeline.is_done(7));
}

TEST(Timeline, counts_what_many_threads_add) {
  constexpr int kThreads = 4;
  constexpr int kEach = 1000;
  Timeline timeline;
  int place = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < kEach; ++k) timeline.set_done(timeline.add(event(place)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(timeline.newest().second, uint64_t{kThreads} * kEach);
  EXPECT_TRUE(timeline.is_done(kThreads * kEach));
}

}  // namespace
}  // namespace smd::gpu
