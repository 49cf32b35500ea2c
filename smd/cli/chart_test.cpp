#include "smd/cli/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

#include "smd/picture/text_width.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

PlotLine line(double (*f)(double), int count = 50) {
  PlotLine out{.name = "line"};
  for (int i = 0; i < count; ++i) out.points.emplace_back(i, f(i));
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

TEST(Chart, a_straight_line_runs_from_corner_to_corner) {
  const auto text = draw_chart({line([](double x) { return x; }, 4)},
                               {.width = 20, .height = 4, .ascii = true, .x_label = "step"});
  EXPECT_EQ(text,
            "  3 +            ooo\n"
            "    |       ooooo   \n"
            "1.5 +   oooo        \n"
            "  0 +ooo            \n"
            "    +---------------\n"
            "     0    step     3\n");
}

TEST(Chart, braille_has_eight_dots_in_a_cell) {
  // Two points, the lower left and the upper right dot of the plot.
  const auto text = draw_chart({{"a", {{0, 0}, {1, kNan}, {2, 1}}}}, {.width = 20, .height = 3});
  EXPECT_THAT(text, HasSubstr("⡀"));
  EXPECT_THAT(text, HasSubstr("⠈"));
}

TEST(Chart, every_width_holds_and_every_line_fits) {
  for (int width = 40; width <= 200; ++width) {
    for (bool ascii : {false, true}) {
      const auto text = draw_chart(
          {line([](double x) { return std::sin(x / 5) * 1e-7; }), line([](double x) { return x; })},
          {.width = width, .height = 8, .ascii = ascii, .x_label = "step"});
      const auto lines = lines_of(text);
      ASSERT_EQ(lines.size(), 8u + 2 + 2);
      for (const auto& one : lines) ASSERT_LE(text_width(one), width);
      ASSERT_EQ(text_width(lines[0]), width);
    }
  }
}

TEST(Chart, what_is_not_finite_is_marked_and_explained) {
  const std::vector<PlotLine> series = {{"a", {{0, 1}, {1, kNan}, {2, kInf}, {3, -kInf}, {4, 2}}}};
  const auto text = draw_chart(series, {.width = 40, .height = 5});
  for (const char* sign : {"×", "▲", "▼", "NaN", "infinity"}) EXPECT_THAT(text, HasSubstr(sign));
  const auto ascii = draw_chart(series, {.width = 40, .height = 5, .ascii = true});
  for (char c : ascii) EXPECT_TRUE(static_cast<unsigned char>(c) < 0x80);
  EXPECT_THAT(draw_chart({line([](double x) { return x; })}, {}), Not(HasSubstr("NaN")));
}

TEST(Chart, nothing_but_nan_is_a_chart_without_numbers) {
  const auto text = draw_chart({{"a", {{0, kNan}, {9, kNan}}}}, {.width = 40, .height = 4});
  EXPECT_THAT(text, HasSubstr("×"));
  EXPECT_THAT(text, Not(HasSubstr("┤")));
}

TEST(Chart, extremes_neither_overflow_nor_vanish) {
  constexpr double kMax = std::numeric_limits<double>::max();
  const auto text = draw_chart({{"a", {{0, -kMax}, {1, kMax}}}}, {.width = 40, .height = 4});
  EXPECT_THAT(text, HasSubstr("1.798e+308"));
  EXPECT_THAT(draw_chart({{"a", {{5, 3}}}}, {.width = 40, .height = 4}), HasSubstr("4.5"));
  EXPECT_THAT(draw_chart({{"a", {{5, 0}}}}, {.width = 40, .height = 4}), HasSubstr("-1"));
  EXPECT_EQ(draw_chart({{"a", {}}}, {}), "There is nothing to draw.\n");
  EXPECT_EQ(draw_chart({{"a", {{kNan, 1}}}}, {}), "There is nothing to draw.\n");
}

TEST(Chart, several_series_are_told_apart) {
  const std::vector<PlotLine> series = {{"up", {{0, 0}, {9, 9}}}, {"down\x1b", {{0, 9}, {9, 0}}}};
  const auto text = draw_chart(series, {.width = 40, .height = 6});
  EXPECT_THAT(text, HasSubstr("  o up\n"));
  EXPECT_THAT(text, HasSubstr("  x down\\x1b\n"));
  const auto colored = draw_chart(series, {.width = 40, .height = 6, .color = true});
  EXPECT_THAT(colored, HasSubstr("\x1b[36m"));
  EXPECT_THAT(colored, HasSubstr("\x1b[33m"));
}

TEST(Chart, a_logarithmic_axis_makes_powers_straight) {
  const auto options = ChartOptions{.width = 40, .height = 5, .ascii = true, .log = true};
  const auto powers = draw_chart({line([](double x) { return std::pow(10, x); }, 5)}, options);
  EXPECT_THAT(powers, HasSubstr("1e+04 +"));
  EXPECT_THAT(powers, HasSubstr("  100 +"));
  EXPECT_THAT(powers, HasSubstr("    1 +"));
  EXPECT_EQ(draw_chart({line([](double) { return -1.0; })}, options),
            "There is nothing to draw.\n");
  EXPECT_THAT(draw_chart({{"x", {{0, 1}, {1, 0}, {2, kNan}, {3, kInf}}}}, options),
              HasSubstr("x NaN  ^ infinity"));
}

}  // namespace
}  // namespace smd::cli
