#include "smd/rules/fit_remark.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace smd::rules {
namespace {

constexpr double kWorse = 0.05;      // validation against its best
constexpr double kGap = 0.1;         // validation against training
constexpr double kImproving = 0.01;  // over the last quarter

// By which part of `from` the metric is worse.
double worse_by(double from, double to, bool rises) {
  const double change = rises ? from - to : to - from;
  return from == 0 ? (change > 0 ? INFINITY : 0) : change / std::fabs(from);
}

}  // namespace

std::string fit_remark(const FitCurves& curves) {
  std::vector<double> train;
  std::ranges::copy_if(curves.train, std::back_inserter(train),
                       [](double x) { return std::isfinite(x); });
  std::vector<std::pair<double, Step>> validation;
  for (size_t i = 0; i < curves.validation.size(); ++i) {
    if (std::isfinite(curves.validation[i])) {
      validation.emplace_back(curves.validation[i], curves.validation_steps[i]);
    }
  }
  if (train.size() < 2 || validation.size() < 2) return "There are too few steps to tell.";
  const auto is_better = [&](const auto& a, const auto& b) {
    return curves.rises ? a.first > b.first : a.first < b.first;
  };
  const auto best = *std::ranges::min_element(validation, is_better);
  const auto last = validation.back();
  const double decline = worse_by(best.first, last.first, curves.rises);
  if (decline > kWorse) {
    return fmt::format(
        "Overfitting: the validation data were best at step {} with {:.6g} and are worse by {:.3g} "
        "% since. Stop there, or regularise.",
        best.second, best.first, 100 * decline);
  }
  const double earlier = train[train.size() - 1 - std::max<size_t>(1, train.size() / 4)];
  const double gain = -worse_by(earlier, train.back(), curves.rises);
  const double gap = worse_by(train.back(), last.first, curves.rises);
  if (gap > kGap) {
    return fmt::format(
        "A gap: the validation data are worse than the training data by {:.3g} %. Regularisation "
        "or more data may close it.",
        100 * gap);
  }
  if (gain > kImproving) {
    return fmt::format(
        "Still improving, by {:.3g} % over the last quarter of the rounds: more rounds may help.",
        100 * gain);
  }
  return "Settled: both have stopped improving and lie close together. If that is not good enough, "
         "the model is too simple or the features tell too little.";
}

}  // namespace smd::rules
