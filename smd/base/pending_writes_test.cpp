#include "smd/base/pending_writes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace smd {
namespace {

struct Counted final : PendingWrites {
  void settle(std::chrono::milliseconds most) override {
    EXPECT_EQ(most, std::chrono::milliseconds(7));
    ++count;
  }
  int count = 0;
};

void settle() { settle_pending_writes(std::chrono::milliseconds(7)); }

TEST(PendingWrites, all_that_live_are_waited_for) {
  const auto one = std::make_shared<Counted>();
  auto other = std::make_shared<Counted>();
  announce(one);
  announce(other);
  settle();
  EXPECT_EQ(one->count, 1);
  EXPECT_EQ(other->count, 1);
  other.reset();
  settle();
  EXPECT_EQ(one->count, 2);
}

TEST(PendingWrites, a_forked_child_waits_for_its_own_alone) {
  const auto ours = std::make_shared<Counted>();
  announce(ours);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    settle();
    const auto own = std::make_shared<Counted>();
    announce(own);
    settle();
    ::_exit(ours->count == 0 && own->count == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace smd
