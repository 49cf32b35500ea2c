#pragma once

// What pictures of curves draw. Plain value.

#include <string>
#include <utility>
#include <vector>

namespace smd {

struct PlotLine {
  std::string name;
  // In the order of drawing. y may be NaN or infinite: such points are marked, and the line breaks.
  // Points whose x is not finite are left out.
  std::vector<std::pair<double, double>> points;
};

}  // namespace smd
