#include "smd/cli/live_table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace smd::cli {
namespace {

class LiveTableTest : public testing::Test {
 protected:
  std::ostringstream out;
  std::ostringstream err;
  Terminal terminal{.out = out, .err = err};
};

TEST_F(LiveTableTest, columns_keep_their_place) {
  LiveTable table(terminal);
  EXPECT_EQ(table.add_row({{"step", "0"}, {"loss", "1.5"}}), 0u);
  EXPECT_EQ(table.add_row({{"loss", "2"}, {"step", "1"}}), 0u);
  EXPECT_EQ(table.add_row({{"step", "2"}}), 0u);
  EXPECT_EQ(out.str(),
            "step        loss\n"
            "   0         1.5\n"
            "   1           2\n"
            "   2           -\n");
}

TEST_F(LiveTableTest, titles_and_texts_cannot_steer_the_terminal) {
  LiveTable table(terminal);
  table.add_row({{"\x1b[2J", "\x07"}});
  EXPECT_EQ(out.str(), "\\x1b[2J\n   \\x07\n");
}

TEST_F(LiveTableTest, columns_that_do_not_fit_are_counted) {
  terminal.out_is_terminal = true;
  terminal.width = 20;
  LiveTable table(terminal);
  EXPECT_EQ(table.add_row({{"a", "1"}, {"b", "2"}, {"c", "3"}}), 1u);
  EXPECT_EQ(out.str(), "a           b\n1           2\n");
}

}  // namespace
}  // namespace smd::cli
