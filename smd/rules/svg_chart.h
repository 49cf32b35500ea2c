#pragma once

// Charts as SVG text for pages that need nothing from elsewhere. Texts are escaped; numbers that
// are not finite are left out. Pure functions.

#include <string>
#include <string_view>
#include <vector>

namespace smd::rules {

// With &, <, > and quotes written so that HTML and SVG show them.
std::string escape_html(std::string_view text);

struct ChartLine {
  std::string name;
  std::vector<double> x;
  std::vector<double> y;  // as many
};

struct LineChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ChartLine> lines;
};

// Lines end where a number is not finite; a line of one point is a dot.
std::string draw(const LineChart& chart);

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
std::string draw(const BarChart& chart);

// Even numbers that span the range, about `count` of them: 0, 0.2, 0.4, …
std::vector<double> tick_numbers(double low, double high, int count);

}  // namespace smd::rules
