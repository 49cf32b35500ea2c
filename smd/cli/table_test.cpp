#include "smd/cli/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

class TableTest : public testing::Test {
 protected:
  std::ostringstream out;
  Terminal terminal{.out = out, .err = out};
  Table table{{{"name"}, {"steps", Align::right}, {"shape"}}};
};

TEST_F(TableTest, columns_are_aligned_by_what_is_seen) {
  table.add_row({"w", "10", "[2, 3]"});
  table.add_row({"損失", "7", ""});
  EXPECT_EQ(table.text(terminal),
            "name  steps  shape\n"
            "w        10  [2, 3]\n"
            "損失      7\n");
}

TEST_F(TableTest, lines_fit_a_terminal_and_numbers_are_kept) {
  terminal.out_is_terminal = true;
  terminal.width = 30;
  table.add_row({std::string(100, 'n'), "1234567", std::string(50, 's')});
  std::istringstream lines(table.text(terminal));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(text_width(line), 30);
    EXPECT_TRUE(line.find("steps") != std::string::npos ||
                line.find("1234567") != std::string::npos);
  }
}

TEST_F(TableTest, nothing_is_cut_or_painted_outside_of_a_terminal) {
  terminal.width = 30;
  table.add_row({std::string(100, 'n'), "1", ""});
  EXPECT_NE(table.text(terminal).find(std::string(100, 'n')), std::string::npos);
  EXPECT_EQ(table.text(terminal).find('\x1b'), std::string::npos);
}

TEST_F(TableTest, a_hostile_name_does_not_reach_the_terminal) {
  table.add_row({"a\x1b[2J\nb", "1", ""});
  EXPECT_NE(table.text(terminal).find("a\\x1b[2J\\x0ab"), std::string::npos);
}

TEST_F(TableTest, a_table_without_rows_has_its_titles) {
  EXPECT_EQ(table.text(terminal), "name  steps  shape\n");
}

}  // namespace
}  // namespace smd::cli
