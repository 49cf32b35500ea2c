#include "smd/base/fork_guard.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace smd {
namespace {

TEST(ForkGuard, knows_the_child_from_the_owner) {
  const ForkGuard guard;
  EXPECT_TRUE(guard.in_owner());
  const pid_t child = fork();
  if (child == 0) _exit(guard.in_owner() ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(guard.in_owner());
}

}  // namespace
}  // namespace smd
