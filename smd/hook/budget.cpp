#include "smd/hook/budget.h"

#include <algorithm>

namespace smd {
namespace {

// Weight of the newest measurement.
constexpr double kNew = 0.25;
// Intervals become shorter again only if this part of the budget is enough: else they would sway.
constexpr double kCalm = 0.8;

}  // namespace

int64_t stretched_interval(int64_t interval, int64_t stride, int64_t max_interval) {
  int64_t stretched = interval;
  for (int64_t factor = 2; factor <= stride && stretched <= max_interval / 2; factor *= 2) {
    stretched *= 2;
  }
  return stretched;
}

int64_t Budget::settle(const Spending& total) {
  const double cost = total.cost_secs - last_.cost_secs;
  const double rest = std::max(total.training_secs - last_.training_secs - cost, 0.0);
  const int64_t steps = total.steps - last_.steps;
  last_ = total;
  ++samples_;
  if (samples_ == 1 || steps <= 0) return stride_;
  const double weight = samples_ == 2 ? 1 : kNew;
  const auto smooth = [&](double& mean, double value) { mean += weight * (value - mean); };
  smooth(period_cost_, cost);
  smooth(step_secs_, rest / static_cast<double>(steps));
  smooth(steps_per_period_, static_cast<double>(steps) / static_cast<double>(stride_));

  const double horizon_cost = kHorizon * period_cost_;
  // What was saved up in a cheap time does not pay for a dear one.
  const double debt =
      std::max(total.cost_secs - options_.max_overhead * total.training_secs, -horizon_cost);
  int64_t most = 1;
  while (most <= options_.max_interval / 2) most *= 2;
  for (int64_t stride = 1; stride < most; stride *= 2) {
    const double share = stride < stride_ ? kCalm * options_.max_overhead : options_.max_overhead;
    if (fits(stride, share, debt)) return stride;
  }
  return most;
}

bool Budget::fits(int64_t stride, double share, double debt) const {
  const double cost = kHorizon * period_cost_;
  const double training = kHorizon * steps_per_period_ * static_cast<double>(stride) * step_secs_;
  return cost + debt <= share * (cost + training);
}

}  // namespace smd
