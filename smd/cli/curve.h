#pragma once

// Curves that show people what a rule saw: the sick tensor over the steps, and the losses of a run.
// Reads the run. Any thread may call.

#include <optional>
#include <string>
#include <vector>

#include "smd/picture/svg_chart.h"
#include "smd/rules/finding.h"
#include "smd/trial/trial.h"

namespace smd::cli {

struct Curve {
  std::vector<PlotLine> series;
  SvgOptions options;
};

// The statistic that the finding is about, of the first tensor that it names, with the threshold
// and the first hit. Where the statistic cannot be drawn, the value or a statistic near to it
// without a threshold. nullopt: the finding is about no tensor, or nothing of it can be read.
std::optional<Curve> curve_of(Trial& trial, const rules::Finding& finding);

// The first tensors of the collection of losses, of the first mode of TRAIN, GLOBAL and EVAL that
// has them.
std::optional<Curve> loss_curve(Trial& trial);

}  // namespace smd::cli
