#include "smd/trial/internal/block_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace smd::internal {
namespace {

struct Counter final : BlockBudget::Holder {
  void drop() override { ++drops; }
  int drops = 0;
};

TEST(BlockBudget, nobody_drops_while_there_is_room) {
  BlockBudget budget(100);
  Counter a, b;
  budget.add(a, 40);
  budget.add(b, 60);
  EXPECT_EQ(budget.bytes(), 100);
  EXPECT_EQ(a.drops + b.drops, 0);
}

TEST(BlockBudget, who_read_longest_ago_drops_first) {
  BlockBudget budget(100);
  Counter a, b, c;
  budget.add(a, 40);
  budget.add(b, 40);
  budget.add(a, 10);
  budget.add(c, 30);  // b was used before a
  EXPECT_EQ(b.drops, 1);
  EXPECT_EQ(a.drops, 0);
  EXPECT_EQ(budget.bytes(), 80);
}

TEST(BlockBudget, a_holder_alone_drops_its_own) {
  BlockBudget budget(100);
  Counter a;
  budget.add(a, 80);
  budget.add(a, 30);
  EXPECT_EQ(a.drops, 1);
  EXPECT_EQ(budget.bytes(), 30);
}

TEST(BlockBudget, one_that_is_larger_than_all_takes_all) {
  BlockBudget budget(100);
  Counter a, b;
  budget.add(a, 50);
  budget.add(b, 500);
  EXPECT_EQ(a.drops, 1);
  EXPECT_EQ(b.drops, 0);
  EXPECT_EQ(budget.bytes(), 500);
  budget.add(a, 10);
  EXPECT_EQ(b.drops, 1);
  EXPECT_EQ(budget.bytes(), 10);
}

TEST(BlockBudget, a_removed_holder_is_not_asked_to_drop) {
  BlockBudget budget(100);
  Counter a, b;
  budget.add(a, 90);
  budget.remove(a);
  budget.remove(a);
  EXPECT_EQ(budget.bytes(), 0);
  budget.add(b, 100);
  EXPECT_EQ(a.drops, 0);
}

TEST(BlockBudget, holders_come_and_go_in_threads) {
  BlockBudget budget(1000);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 500; ++round) {
        Counter one;
        budget.add(one, 300);
        budget.add(one, 1);
        budget.remove(one);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.bytes(), 0);
}

}  // namespace
}  // namespace smd::internal
