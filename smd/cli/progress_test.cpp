#include "smd/cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

TEST(Progress, the_line_shows_part_rate_and_rest) {
  EXPECT_EQ(progress_line("verify", {512, 1024, 0.5}, 80),
            "verify [####################                    ]  50%  1.0 KiB/s  0.5 s left");
  EXPECT_EQ(progress_line("verify", {0, 1024, 0}, 80),
            "verify [                                        ]   0%");
  EXPECT_EQ(progress_line("v", {0, 0, 1}, 20), "v [###########] 100%");
  EXPECT_EQ(progress_line("diff", {1, 4, 2, ProgressUnit::steps}, 80),
            "diff [##########                              ]  25%  6.0 s left");
}

TEST(Progress, the_line_fits_every_width) {
  for (int width = 1; width < 120; ++width) {
    EXPECT_LE(text_width(progress_line("verify", {1 << 20, 3 << 20, 2}, width)), width);
  }
}

class ProgressTest : public testing::Test {
 protected:
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>(1000);
  std::ostringstream out;
  std::ostringstream err;
  Terminal terminal{.out = out, .err = err, .err_is_terminal = true};
};

TEST_F(ProgressTest, appears_after_a_moment_and_vanishes) {
  {
    Progress progress(terminal, clock, "verify");
    progress.update(1, 10);
    EXPECT_EQ(err.str(), "");
    clock->advance(0.5);
    progress.update(5, 10);
    EXPECT_NE(err.str().find("50%"), std::string::npos);
    const std::string before = err.str();
    clock->advance(0.01);
    progress.update(6, 10);
    EXPECT_EQ(err.str(), before);  // not more than ten times a second
  }
  EXPECT_TRUE(err.str().ends_with("\r\x1b[K"));
  EXPECT_EQ(out.str(), "");
}

TEST_F(ProgressTest, is_silent_where_nobody_looks) {
  terminal.err_is_terminal = false;
  {
    Progress progress(terminal, clock, "verify");
    clock->advance(5);
    progress.update(5, 10);
  }
  EXPECT_EQ(err.str(), "");
}

}  // namespace
}  // namespace smd::cli
