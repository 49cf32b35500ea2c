#pragma once

// Lines as an SVG picture: (x, y) series over axes, with a threshold and a mark where something
// began. Needs no script, no fonts and no other files; light or dark as its viewer likes it.
// Pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "smd/picture/plot_line.h"

namespace smd {

struct SvgOptions {
  int width = 640;
  int height = 240;
  std::string title;  // also for those who cannot see it
  std::string x_label = "step";
  std::string y_label;      // empty: the title says it
  bool whole_steps = true;  // the x axis has no ticks between two steps
  // A horizontal line. Left out if it lies so far away that the curve would be flat.
  std::optional<double> threshold;
  // A vertical line, with words.
  std::optional<double> mark;
  std::string mark_label;
  bool log = false;  // logarithmic y axis; points that are not positive stand at its lower edge
  // With its own style, as a file of its own; otherwise the page brings svg_style().
  bool is_file = true;
};

// The element <svg>. NaN is marked on the x axis, an infinity at the upper or lower edge, and the
// line breaks there. However many points there are, the picture stays small.
std::string draw_svg(const std::vector<PlotLine>& series, const SvgOptions& options);

// Rules of CSS for the pictures of a page.
std::string_view svg_style();

// Whether a logarithmic axis shows these numbers better: they are positive, zeros aside, and span
// more than three powers of ten.
bool suits_log_axis(const std::vector<PlotLine>& series);

}  // namespace smd
