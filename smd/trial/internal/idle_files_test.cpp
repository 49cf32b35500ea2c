#include "smd/trial/internal/idle_files.h"

#include <gtest/gtest.h>

#include "smd/trial/internal/open_files.h"

namespace smd::internal {
namespace {

class IdleFilesTest : public testing::Test {
 protected:
  static OpenFile file(uint64_t owner) { return {.owner = owner, .path = "a", .file = nullptr}; }

  const std::shared_ptr<storage::Storage> storage = storage::memory_storage();
  IdleFiles idle{3};
  OpenFiles a{*storage, idle};
  OpenFiles b{*storage, idle};
};

TEST_F(IdleFilesTest, a_file_is_given_to_one_reader) {
  idle.put(a, file(1));
  EXPECT_TRUE(idle.take(a, 1));
  EXPECT_FALSE(idle.take(a, 1));
}

TEST_F(IdleFilesTest, trials_do_not_share_files) {
  idle.put(a, file(1));
  EXPECT_FALSE(idle.take(b, 1));
}

TEST_F(IdleFilesTest, one_of_each_is_kept) {
  idle.put(a, file(1));
  idle.put(a, file(1));
  EXPECT_EQ(idle.count(), 1);
}

TEST_F(IdleFilesTest, all_trials_together_keep_few) {
  idle.put(a, file(1));
  idle.put(b, file(1));
  idle.put(a, file(2));
  idle.put(a, *idle.take(a, 1));
  idle.put(b, file(2));  // that of b was used longest ago
  EXPECT_EQ(idle.count(), 3);
  EXPECT_FALSE(idle.take(b, 1));
  EXPECT_TRUE(idle.take(a, 1));
  EXPECT_TRUE(idle.take(a, 2));
  EXPECT_TRUE(idle.take(b, 2));
}

TEST_F(IdleFilesTest, the_files_of_a_trial_are_closed_with_it) {
  idle.put(a, file(1));
  {
    OpenFiles c(*storage, idle);
    idle.put(c, file(1));
    idle.put(c, file(2));
  }
  EXPECT_EQ(idle.count(), 1);
  EXPECT_TRUE(idle.take(a, 1));
}

}  // namespace
}  // namespace smd::internal
