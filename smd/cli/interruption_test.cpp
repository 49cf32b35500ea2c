#include "smd/cli/interruption.h"

#include <gtest/gtest.h>

namespace smd::cli {
namespace {

TEST(Interruption, a_first_signal_is_noted) {
  for (int signal : {SIGINT, SIGTERM}) {
    const Interruption interruption;
    EXPECT_FALSE(interruption.has_come());
    std::raise(signal);
    EXPECT_TRUE(interruption.has_come());
  }
}

TEST(Interruption, a_second_signal_ends_the_process) {
  EXPECT_EXIT(
      {
        const Interruption interruption;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(Interruption, afterwards_all_is_as_before) {
  struct sigaction before {};
  struct sigaction after {};
  ::sigaction(SIGINT, nullptr, &before);
  { const Interruption interruption; }
  ::sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace
}  // namespace smd::cli
