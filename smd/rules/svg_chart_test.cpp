#include "smd/rules/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

size_t count(const std::string& text, std::string_view part) {
  size_t out = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++out;
  return out;
}

TEST(SvgChart, ticks_are_even_numbers_inside_of_the_range) {
  EXPECT_THAT(tick_numbers(0, 1, 5), ElementsAre(0, 0.2, 0.4, 0.6000000000000001, 0.8, 1));
  EXPECT_THAT(tick_numbers(-3, 7, 5), ElementsAre(-2, 0, 2, 4, 6));
  EXPECT_THAT(tick_numbers(2, 2, 5), ElementsAre(2));
}

TEST(SvgChart, lines_go_from_corner_to_corner) {
  const std::string out =
      draw(LineChart{.title = "Loss", .lines = {{.name = "train", .x = {0, 10}, .y = {5, 1}}}});
  EXPECT_THAT(out, HasSubstr("M70.00 30.00L624.00 234.00"));
  EXPECT_THAT(out, HasSubstr(">train</text>"));
}

TEST(SvgChart, lines_break_where_numbers_are_not_finite) {
  const std::string out = draw(LineChart{
      .title = "", .lines = {{.name = "a", .x = {0, 1, 2, 3, 4}, .y = {1, 2, NAN, 3, INFINITY}}}});
  EXPECT_THAT(out, Not(HasSubstr("nan")));
  EXPECT_THAT(out, Not(HasSubstr("inf")));
  const size_t path = out.find("<path");
  EXPECT_EQ(count(out.substr(path, out.find("/>", path) - path), "M"), 2u);
  EXPECT_EQ(count(out, "<circle"), 1u);
}

TEST(SvgChart, long_lines_are_thinned_and_keep_their_end) {
  ChartLine line{.name = "a"};
  for (int i = 0; i < 100000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i);
  }
  const std::string out = draw(LineChart{.lines = {line}});
  EXPECT_LT(count(out, "L"), 2100u);
  EXPECT_THAT(out, HasSubstr("L624.00 30.00"));
}

TEST(SvgChart, charts_without_numbers_are_drawn_empty) {
  EXPECT_THAT(draw(LineChart{.title = "none"}), HasSubstr("</svg>"));
  EXPECT_THAT(draw(LineChart{.lines = {{.name = "a", .x = {1}, .y = {NAN}}}}), HasSubstr("</svg>"));
  EXPECT_THAT(draw(BarChart{.bars = {{"a", 0}, {"b", NAN}}}), HasSubstr("width=\"0.00\""));
}

TEST(SvgChart, texts_are_escaped) {
  const std::string out = draw(BarChart{.title = "<&>", .bars = {{"\"f<1>'", 2}}});
  EXPECT_THAT(out, HasSubstr("&lt;&amp;&gt;"));
  EXPECT_THAT(out, HasSubstr("&quot;f&lt;1&gt;&#39;"));
  EXPECT_THAT(out, Not(HasSubstr("f<1>")));
}

TEST(SvgChart, the_largest_bar_fills_the_room) {
  const std::string out = draw(BarChart{.bars = {{"a", 2}, {"b", 4}, {"c", -1}}});
  EXPECT_THAT(out, HasSubstr("width=\"190.00\""));
  EXPECT_THAT(out, HasSubstr("width=\"380.00\""));
  EXPECT_EQ(count(out, "width=\"0.00\""), 1u);
}

}  // namespace
}  // namespace smd::rules
