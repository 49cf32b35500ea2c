#include "smd/picture/bar_chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <pugixml.hpp>

namespace smd {
namespace {

// Widths of the bars as a parser sees them.
std::vector<double> widths(const std::string& svg) {
  pugi::xml_document document;
  EXPECT_TRUE(document.load_string(svg.c_str())) << svg;
  std::vector<double> out;
  for (const auto& bar : document.select_nodes("//rect")) {
    out.push_back(bar.node().attribute("width").as_double());
  }
  return out;
}

TEST(BarChart, the_largest_bar_fills_the_room_and_negative_ones_are_empty) {
  EXPECT_EQ(widths(draw_svg(BarChart{.bars = {{"a", 2}, {"b", 4}, {"c", -1}}})),
            (std::vector<double>{190, 380, 0}));
}

TEST(BarChart, what_is_no_number_has_no_bar) {
  EXPECT_EQ(widths(draw_svg(BarChart{.bars = {{"a", 0}, {"b", NAN}, {"c", INFINITY}}})),
            (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(widths(draw_svg(BarChart{.title = "none"})), std::vector<double>());
}

TEST(BarChart, texts_come_back_as_they_were_given) {
  const std::string name = "\"f<1>' & </svg>";
  pugi::xml_document document;
  const std::string svg = draw_svg({.title = name, .value_label = name, .bars = {{name, 2}}});
  ASSERT_TRUE(document.load_string(svg.c_str()));
  EXPECT_EQ(document.child("svg").child("title").text().get(), name);
  EXPECT_EQ(document.select_nodes("//text").size(), 4U);
  EXPECT_EQ(document.select_nodes("//text").first().node().text().get(), name);
}

}  // namespace
}  // namespace smd
