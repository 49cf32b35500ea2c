#include "smd/cli/curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/cli/selection.h"
#include "smd/cli/step_text.h"
#include "smd/collection/builtin.h"
#include "smd/rules/statistic.h"

namespace smd::cli {
namespace {

constexpr size_t kMostLosses = 4;
constexpr double kTolerance = 1e-6;

std::optional<PlotLine> read(Trial& trial, const std::string& tensor, const SeriesQuery& query) {
  const auto numbers = trial.series(tensor, query);
  if (!numbers.ok() || numbers->steps.empty()) return std::nullopt;
  PlotLine out{.name = number_label(tensor, query.reduction)};
  for (size_t i = 0; i < numbers->steps.size(); ++i) {
    out.points.emplace_back(static_cast<double>(numbers->steps[i]), numbers->values[i]);
  }
  return out;
}

// The value if it is a single number, else a statistic that every tensor has.
std::optional<PlotLine> read_any(Trial& trial, const std::string& tensor, SeriesQuery query,
                                 std::initializer_list<std::string_view> reductions) {
  for (std::string_view reduction : reductions) {
    query.reduction = reduction;
    if (auto series = read(trial, tensor, query)) return series;
  }
  return std::nullopt;
}

bool passes_through(const PlotLine& series, double x, double y) {
  return std::ranges::any_of(series.points, [&](const auto& point) {
    return point.first == x && std::fabs(point.second - y) <= kTolerance * std::fabs(y);
  });
}

}  // namespace

std::optional<Curve> curve_of(Trial& trial, const rules::Finding& finding) {
  const auto& violations = finding.first_hit.violations;
  const auto about = std::ranges::find_if(
      violations, [](const rules::Violation& violation) { return !violation.tensor.empty(); });
  if (about == violations.end()) return std::nullopt;
  const StepInfo& first = finding.first_step;
  const SeriesQuery query{.mode = first.mode, .worker = about->worker, .incomplete = true};
  Curve out;
  out.options.x_label = step_axis(first.mode);
  out.options.is_file = false;
  out.options.mark = static_cast<double>(first.mode == Mode::global ? first.step : first.mode_step);
  out.options.mark_label = "first hit";
  const auto statistic = rules::find_statistic(about->metric);
  std::optional<PlotLine> series;
  if (statistic && rules::reduction_of(*statistic)) {
    series = read_any(trial, about->tensor, query, {rules::name_of(*statistic)});
    // A rule may judge a difference of statistics under the name of the statistic.
    if (series && passes_through(*series, *out.options.mark, about->value)) {
      out.options.threshold = about->threshold;
    }
  }
  if (!series) {
    series = read_any(trial, about->tensor, query, {"", "abs_max", "max", "abs_mean", "mean"});
  }
  if (!series) return std::nullopt;
  out.options.title = series->name;
  out.series.push_back(std::move(*series));
  out.options.log = suits_log_axis(out.series);
  return out;
}

std::optional<Curve> loss_curve(Trial& trial) {
  const auto snapshot = trial.snapshot();
  const auto losses =
      TensorFilter::create(*snapshot, {.collection = std::string(collection_keys::kLosses)});
  if (!losses.ok()) return std::nullopt;
  for (Mode mode : {Mode::train, Mode::global, Mode::eval}) {
    Curve out;
    for (uint32_t tensor : snapshot->tensors(mode)) {
      const std::string& name = snapshot->names().tensors[tensor];
      if (!losses->selects(name) || out.series.size() == kMostLosses) continue;
      auto series = read_any(trial, name, {.mode = mode, .incomplete = true}, {"", "mean"});
      if (series) out.series.push_back(std::move(*series));
    }
    if (out.series.empty()) continue;
    out.options.title = out.series.size() == 1 ? out.series[0].name : "losses";
    out.options.x_label = step_axis(mode);
    out.options.is_file = false;
    out.options.log = suits_log_axis(out.series);
    return out;
  }
  return std::nullopt;
}

}  // namespace smd::cli
