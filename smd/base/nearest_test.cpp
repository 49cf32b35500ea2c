#include "smd/base/nearest.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

const std::vector<std::string> kKeys = {"save_interval", "save_steps", "start_step", "end_step"};

TEST(Nearest, finds_a_typing_mistake) {
  EXPECT_EQ(nearest("save_intervall", kKeys), "save_interval");
  EXPECT_EQ(nearest("END_STEP", kKeys), "end_step");
  EXPECT_EQ(did_you_mean("stat_step", kKeys), " Did you mean 'start_step'?");
}

TEST(Nearest, stays_silent_when_nothing_is_close) {
  EXPECT_EQ(nearest("zzz", kKeys), "");
  EXPECT_EQ(did_you_mean("", kKeys), "");
  EXPECT_EQ(did_you_mean("x", std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace smd
