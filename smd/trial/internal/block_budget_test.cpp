#include "smd/trial/internal/block_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace smd::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Listed final : BlockBudget::Holder {
  void drop(uint64_t number) override { dropped.push_back(number); }
  std::vector<uint64_t> dropped;
};

TEST(BlockBudget, nobody_drops_while_there_is_room) {
  BlockBudget budget(100);
  Listed a, b;
  budget.add(a, 1, 40);
  budget.add(b, 1, 60);
  EXPECT_EQ(budget.bytes(), 100);
  EXPECT_THAT(a.dropped, IsEmpty());
  EXPECT_THAT(b.dropped, IsEmpty());
}

TEST(BlockBudget, what_was_added_longest_ago_is_dropped_first) {
  BlockBudget budget(100);
  Listed a, b;
  budget.add(a, 1, 40);
  budget.add(b, 1, 40);
  budget.add(a, 2, 10);
  budget.add(a, 3, 30);
  EXPECT_THAT(a.dropped, ElementsAre(1));
  EXPECT_THAT(b.dropped, IsEmpty());
  EXPECT_EQ(budget.bytes(), 80);
  budget.add(b, 2, 70);
  EXPECT_THAT(a.dropped, ElementsAre(1, 2));
  EXPECT_THAT(b.dropped, ElementsAre(1));
  EXPECT_EQ(budget.bytes(), 100);
}

TEST(BlockBudget, no_more_is_dropped_than_needed) {
  BlockBudget budget(100);
  Listed a;
  for (uint64_t number = 0; number < 1000; ++number) {
    budget.add(a, number, 10);
    EXPECT_EQ(budget.bytes(), std::min<uint64_t>(100, 10 * (number + 1)));
  }
}

TEST(BlockBudget, one_that_is_larger_than_all_is_dropped_at_once) {
  BlockBudget budget(100);
  Listed a, b;
  budget.add(a, 1, 50);
  budget.add(b, 7, 500);
  EXPECT_THAT(a.dropped, ElementsAre(1));
  EXPECT_THAT(b.dropped, ElementsAre(7));
  EXPECT_EQ(budget.bytes(), 0);
}

TEST(BlockBudget, a_removed_holder_is_not_asked_to_drop) {
  BlockBudget budget(100);
  Listed a, b;
  budget.add(a, 1, 90);
  budget.remove(a);
  budget.remove(a);
  EXPECT_EQ(budget.bytes(), 0);
  budget.add(b, 1, 100);
  EXPECT_THAT(a.dropped, IsEmpty());
}

TEST(BlockBudget, holders_come_and_go_in_threads) {
  BlockBudget budget(1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        Listed one;
        budget.add(one, 1, 300);
        budget.add(one, 2, 1);
        budget.remove(one);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.bytes(), 0);
}

}  // namespace
}  // namespace smd::internal
