#include "smd/trial/internal/kept_blocks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <thread>

namespace smd::internal {
namespace {

constexpr uint64_t kSlabBytes = KeptBlocks::kSlabBytes;

class KeptBlocksTest : public testing::Test {
 protected:
  // Every byte of a block is the last one of its key.
  static void put(KeptBlocks& to, uint64_t key, uint64_t bytes) {
    const auto room = to.allocate(bytes);
    ASSERT_NE(room.memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(room.memory.get()) % alignof(std::max_align_t), 0);
    std::fill_n(room.memory.get(), bytes, static_cast<std::byte>(key));
    to.keep(key, room);
  }
  static bool has(const KeptBlocks& blocks, uint64_t key, uint64_t bytes) {
    const auto found = blocks.find(key);
    return found && std::all_of(found.get(), found.get() + bytes,
                                [&](std::byte one) { return one == static_cast<std::byte>(key); });
  }

  BlockBudget budget{10 * kSlabBytes};
  KeptBlocks blocks{budget};
};

TEST_F(KeptBlocksTest, blocks_of_all_sizes_lie_side_by_side) {
  const std::vector<uint64_t> sizes = {1, 17, 0, 4096, kSlabBytes / 4, kSlabBytes, 5};
  for (uint64_t i = 0; i < 3 * sizes.size(); ++i) put(blocks, i, sizes[i % sizes.size()]);
  for (uint64_t i = 0; i < 3 * sizes.size(); ++i) {
    EXPECT_TRUE(has(blocks, i, sizes[i % sizes.size()])) << i;
  }
  EXPECT_EQ(blocks.find(1000), nullptr);
}

TEST_F(KeptBlocksTest, the_oldest_are_forgotten_and_the_newest_are_not) {
  constexpr uint64_t kBytes = 40'000;  // six in a slab
  for (uint64_t key = 0; key < 300; ++key) {
    put(blocks, key, kBytes);
    EXPECT_TRUE(has(blocks, key, kBytes));
    EXPECT_LE(budget.bytes(), 10 * kSlabBytes);
  }
  for (uint64_t key = 0; key < 240; ++key) EXPECT_FALSE(has(blocks, key, kBytes)) << key;
  for (uint64_t key = 240; key < 300; ++key) EXPECT_TRUE(has(blocks, key, kBytes)) << key;
}

TEST_F(KeptBlocksTest, readers_share_the_budget) {
  put(blocks, 1, kSlabBytes);
  KeptBlocks other(budget);
  for (uint64_t key = 0; key < 9; ++key) put(other, key, kSlabBytes);
  EXPECT_TRUE(has(blocks, 1, kSlabBytes));
  put(other, 9, kSlabBytes);
  EXPECT_FALSE(has(blocks, 1, kSlabBytes));
}

TEST_F(KeptBlocksTest, a_reader_that_ends_gives_its_share_back) {
  put(blocks, 1, 10);
  {
    KeptBlocks other(budget);
    put(other, 1, 10);
    EXPECT_EQ(budget.bytes(), 2 * kSlabBytes);
  }
  EXPECT_EQ(budget.bytes(), kSlabBytes);
}

TEST_F(KeptBlocksTest, very_small_blocks_do_not_become_too_many) {
  for (uint64_t key = 0; key < 20'000; ++key) put(blocks, key, 1);
  EXPECT_FALSE(has(blocks, 0, 1));
  EXPECT_TRUE(has(blocks, 19'999, 1));
}

TEST_F(KeptBlocksTest, what_somebody_still_reads_stays_as_it_is) {
  put(blocks, 7, 100);
  const auto held = blocks.find(7);
  for (uint64_t key = 100; key < 120; ++key) put(blocks, key, kSlabBytes);
  EXPECT_EQ(blocks.find(7), nullptr);
  EXPECT_EQ(held.get()[99], std::byte{7});
}

TEST_F(KeptBlocksTest, a_room_that_was_needed_meanwhile_is_not_kept) {
  const auto room = blocks.allocate(100);
  for (uint64_t key = 100; key < 120; ++key) put(blocks, key, kSlabBytes);
  blocks.keep(7, room);
  EXPECT_EQ(blocks.find(7), nullptr);
}

TEST_F(KeptBlocksTest, what_is_larger_than_the_budget_is_read_and_not_kept) {
  put(blocks, 1, 11 * kSlabBytes);
  EXPECT_EQ(blocks.find(1), nullptr);
  EXPECT_EQ(budget.bytes(), 0);
}

TEST_F(KeptBlocksTest, threads_read_while_others_keep) {
  KeptBlocks other(budget);
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      KeptBlocks& mine = thread % 2 == 0 ? blocks : other;
      for (uint64_t i = 0; i < 500; ++i) {
        put(mine, i * 4 + thread, 20'000);
        if (mine.find(i)) EXPECT_TRUE(has(mine, i, 1) || !mine.find(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(budget.bytes(), 10 * kSlabBytes);
}

}  // namespace
}  // namespace smd::internal
