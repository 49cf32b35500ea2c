#pragma once

// Whether a metric on training and validation data speaks of overfitting or underfitting, in one or
// two sentences. Pure function.

#include <string>
#include <vector>

#include "smd/types/step.h"

namespace smd::rules {

struct FitCurves {
  std::vector<double> train;
  std::vector<double> validation;
  std::vector<Step> validation_steps;  // as many as validation
  bool rises = false;                  // better when larger
};

std::string fit_remark(const FitCurves& curves);

}  // namespace smd::rules
