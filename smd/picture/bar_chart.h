#pragma once

// Bars as an SVG picture inside of a page that brings svg_style(). Texts are escaped. Pure
// function.

#include <string>
#include <vector>

namespace smd {

struct ChartBar {
  std::string name;
  double value = 0;
};

struct BarChart {
  std::string title;
  std::string value_label;
  std::vector<ChartBar> bars;  // from top to bottom
};

// One line of the drawing for each bar, with its value. Negative values are drawn as zero.
std::string draw_svg(const BarChart& chart);

}  // namespace smd
