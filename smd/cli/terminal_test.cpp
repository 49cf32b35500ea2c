#include "smd/cli/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

namespace smd::cli {
namespace {

TEST(Terminal, paints_only_where_there_is_colour) {
  std::ostringstream out;
  Terminal terminal{.out = out, .err = out};
  EXPECT_EQ(terminal.paint(Style::bad, "x"), "x");
  terminal.color = true;
  EXPECT_EQ(terminal.paint(Style::bad, "x"), "\x1b[31mx\x1b[0m");
}

TEST(Terminal, sentences_go_to_err_and_cannot_steer_it) {
  std::ostringstream out;
  std::ostringstream err;
  const Terminal terminal{.out = out, .err = err};
  terminal.say("There is no '\x1b[2J'.");
  EXPECT_EQ(err.str(), "smdebug: There is no '\\x1b[2J'.\n");
  EXPECT_EQ(out.str(), "");
}

TEST(Terminal, colour_follows_the_choice_then_the_environment) {
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  EXPECT_TRUE(wants_color(ColorChoice::automatic, true));
  EXPECT_FALSE(wants_color(ColorChoice::automatic, false));
  EXPECT_TRUE(wants_color(ColorChoice::always, false));
  EXPECT_FALSE(wants_color(ColorChoice::never, true));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_FALSE(wants_color(ColorChoice::automatic, true));
  EXPECT_TRUE(wants_color(ColorChoice::always, true));
  ::unsetenv("NO_COLOR");
  ::setenv("TERM", "dumb", 1);
  EXPECT_FALSE(wants_color(ColorChoice::automatic, true));
}

TEST(Terminal, lines_have_any_length_outside_of_terminals) {
  std::ostringstream out;
  Terminal terminal{.out = out, .err = out, .width = 50};
  EXPECT_EQ(terminal.out_width(), 0);
  terminal.out_is_terminal = true;
  EXPECT_EQ(terminal.out_width(), 50);
}

}  // namespace
}  // namespace smd::cli
