#include "smd/types/mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(Mode, names_parse_back_in_any_case) {
  for (Mode mode : kModes) EXPECT_EQ(*parse_mode(name_of(mode)), mode);
  EXPECT_EQ(*parse_mode("eval"), Mode::eval);
  EXPECT_EQ(static_cast<int>(Mode::global), 4);
}

TEST(Mode, an_unknown_name_gets_the_nearest_choice) {
  auto mode = parse_mode("trian");
  ASSERT_FALSE(mode.ok());
  EXPECT_THAT(mode.error().message, testing::HasSubstr("Did you mean 'TRAIN'?"));
}

}  // namespace
}  // namespace smd
