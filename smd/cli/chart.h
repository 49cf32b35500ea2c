#pragma once

// Lines in a terminal: (x, y) series drawn with braille dots. Pure function.

#include <string>
#include <utility>
#include <vector>

namespace smd::cli {

struct Series {
  std::string name;
  // In the order of drawing. y may be NaN or infinite: such points are marked, and the line breaks.
  // Points whose x is not finite are left out.
  std::vector<std::pair<double, double>> points;
};

struct ChartOptions {
  int width = 80;      // columns of the whole chart, at least 20
  int height = 12;     // rows of the plot itself, at least 3
  bool ascii = false;  // no characters beyond ASCII
  bool color = false;  // one colour per series; without it, several series get a letter each
  bool log = false;    // logarithmic y axis; points that are not positive are left out
  std::string x_label;
};

// Lines with newlines: the plot with its axes, the x label, and a legend if there are several
// series or marks. NaN is marked on the x axis, an infinity at the upper or lower edge.
std::string draw_chart(const std::vector<Series>& series, const ChartOptions& options);

}  // namespace smd::cli
