#pragma once

// Lines in a terminal: (x, y) series drawn with braille dots. Pure function.

#include <string>
#include <vector>

#include "smd/picture/plot_line.h"

namespace smd::cli {

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
std::string draw_chart(const std::vector<PlotLine>& series, const ChartOptions& options);

}  // namespace smd::cli
