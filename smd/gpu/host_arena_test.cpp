// Pieces of memory that nobody touches: its addresses are invented.

#include "smd/gpu/host_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <utility>
#include <vector>

namespace smd::gpu {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

class HostArenaTest : public testing::Test {
 protected:
  std::byte* take(size_t size) {
    auto piece = arena_.take(size);
    EXPECT_TRUE(piece.ok());
    return *piece;
  }
  size_t slab_of(const std::byte* at) const {
    size_t i = 0;
    while (i < slabs_.size() && !(slabs_[i].first <= at && at < slabs_[i].first + slabs_[i].second))
      ++i;
    return i;
  }

  std::vector<std::pair<std::byte*, size_t>> slabs_;
  size_t most_ = size_t{1} << 40;  // of one lock
  // Slabs lie side by side, as they may in a process.
  std::byte* end_ = reinterpret_cast<std::byte*>(size_t{1} << 40);
  HostArena arena_{[this](size_t size) -> Result<std::byte*> {
    if (size > most_) return Error{ErrorCode::unsupported, "Could not lock memory."};
    slabs_.emplace_back(end_, size);
    return std::exchange(end_, end_ + size);
  }};
};

TEST_F(HostArenaTest, small_pieces_share_what_is_locked_once) {
  for (int i = 0; i < 1000; ++i) take(100);
  EXPECT_EQ(slabs_.size(), 1u);
  EXPECT_EQ(arena_.locked_bytes(), slabs_[0].second);
}

TEST_F(HostArenaTest, pieces_begin_at_pages) {
  take(100);
  EXPECT_EQ(take(5000) - slabs_[0].first, 4096);
  EXPECT_EQ(take(1) - slabs_[0].first, 3 * 4096);
}

TEST_F(HostArenaTest, nothing_is_a_piece_too) {
  std::byte* const none = take(0);
  EXPECT_NE(take(0), none);
}

TEST_F(HostArenaTest, pieces_join_their_neighbours_in_any_order) {
  std::vector<int> order{0, 1, 2, 3};
  do {
    std::byte* pieces[4];
    for (std::byte*& piece : pieces) piece = take(kMiB);
    for (const int i : order) arena_.give_back(pieces[i]);
    arena_.give_back(take(4 * kMiB));
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(slabs_.size(), 1u);
}

TEST_F(HostArenaTest, pieces_of_two_slabs_do_not_join) {
  std::byte* const first = take(4 * kMiB);
  std::byte* const second = take(4 * kMiB);
  ASSERT_EQ(slabs_.size(), 2u);
  ASSERT_EQ(first + 4 * kMiB, second);
  arena_.give_back(first);
  arena_.give_back(second);
  take(8 * kMiB);
  EXPECT_EQ(slabs_.size(), 3u);
}

TEST_F(HostArenaTest, the_smallest_piece_that_fits_is_taken) {
  std::vector<std::byte*> pieces;
  for (const size_t size : {kMiB, kMiB / 2, kMiB}) {
    pieces.push_back(take(size));
    take(4096);  // holds them apart
  }
  for (std::byte* const piece : pieces) arena_.give_back(piece);
  EXPECT_EQ(take(kMiB / 2), pieces[1]);
}

TEST_F(HostArenaTest, what_cannot_be_locked_changes_nothing) {
  std::byte* const piece = take(kMiB);
  most_ = 0;
  EXPECT_FALSE(arena_.take(8 * kMiB).ok());
  arena_.give_back(piece);
  EXPECT_EQ(take(kMiB), piece);
  EXPECT_EQ(slabs_.size(), 1u);
}

TEST_F(HostArenaTest, where_little_can_be_locked_it_locks_what_is_needed) {
  most_ = kMiB;
  for (int i = 0; i < 3; ++i) take(kMiB - 1);
  EXPECT_EQ(arena_.locked_bytes(), 3 * kMiB);
}

// As tensors of a training whose sequences have another length at every step. A pool of blocks by
// size locks 4.4 times what is in use then.
TEST_F(HostArenaTest, sizes_that_always_differ_need_less_than_twice_what_is_in_use) {
  std::mt19937 random(7);
  std::deque<std::pair<std::byte*, size_t>> used;
  size_t in_use = 0, most_in_use = 0;
  for (int step = 0; step < 2000; ++step) {
    const size_t length = 1 + random() % 64;
    for (int tensor = 1; tensor < 10; ++tensor) {
      const size_t size = length * static_cast<size_t>(tensor) * (random() % 70000 + 100000);
      while (in_use + size > 1024 * kMiB) {
        arena_.give_back(used.front().first);
        in_use -= used.front().second;
        used.pop_front();
      }
      std::byte* const at = take(size);
      for (const auto& [other, bytes] : used) {
        ASSERT_TRUE(at + size <= other || other + bytes <= at);
      }
      ASSERT_EQ(slab_of(at), slab_of(at + size - 1));
      used.emplace_back(at, size);
      in_use += size;
      most_in_use = std::max(most_in_use, in_use);
    }
  }
  EXPECT_GT(most_in_use, 1000 * kMiB);
  EXPECT_LT(arena_.locked_bytes(), 2 * most_in_use);
  EXPECT_LT(slabs_.size(), 30u);
}

}  // namespace
}  // namespace smd::gpu
