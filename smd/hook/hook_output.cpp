// The part of the hook that tells outputs beside the run what they show: curves, metrics,
// histograms and which collections hold a tensor.

#include <fmt/format.h>

#include <cmath>

#include "smd/hook/hook.h"
#include "smd/summary/summary_files.h"

namespace smd {
namespace {

// The platform refuses metrics that are older than this, or further ahead.
constexpr double kOldestMetricSecs = 14 * 86400;
constexpr double kNewestMetricSecs = 2 * 3600;

}  // namespace

void Hook::warn_of_output(const Error& error) {
  warn_once(fmt::format("Numbers beside the run were lost; the run itself is not harmed. {}",
                        error.message));
}

void Hook::emit(SavedScalar scalar) {
  if (!writer_->has_outputs()) return;
  const double ahead = scalar.wall_secs - options_.clock->unix_secs();
  if (scalar.is_metric && (ahead < -kOldestMetricSecs || ahead > kNewestMetricSecs)) {
    warn_once(
        fmt::format("The timestamp of the metric '{}' is more than 14 days old or 2 hours ahead; "
                    "it is replaced by the present time.",
                    scalar.name));
    scalar.wall_secs = options_.clock->unix_secs();
  }
  if (scalar.is_metric && !std::isfinite(scalar.value)) {
    warn_of_metric(scalar.name, std::isnan(scalar.value));
    scalar.is_metric = false;
  }
  writer_->scalar(scalar);
}

void Hook::warn_of_metric(std::string_view name, bool nan) {
  warn_once(fmt::format("The metric '{}' is {} and not passed on; the run has it.", name,
                        nan ? "NaN" : "infinite"));
}

void Hook::emit_mean(std::string_view name, const TensorView& tensor, const Action& action) {
  const bool is_mean = tensor.size() > 1;
  if (is_mean && !action.metric) return;
  static const Reduction mean = *parse_reduction("mean");
  ReductionSet wanted;
  wanted.add(mean);
  reduced_already_ = false;
  const Status reduced = reduce(tensor, {.reductions = wanted}, scratch_);
  if (!reduced.ok() || scratch_.values.empty()) return;  // complex numbers have no such mean
  emit({.name = name,
        .value = scratch_.values.front().second.to_double(),
        .wall_secs = options_.clock->unix_secs(),
        .is_metric = action.metric,
        .is_mean = is_mean});
}

// Of the tensor that was reduced last.
void Hook::emit_histogram(std::string_view name, std::string_view collection, double wall_secs) {
  if (reduced_->histogram.counts.empty()) {
    warn_once(
        fmt::format("'{}' has no number between -9.9e19 and 9.9e19 at step {}: there is no "
                    "histogram of it.",
                    name, step().step));
    return;
  }
  open_step();
  writer_->histogram({.name = fmt::format("{}/{}", collection, name),
                      .wall_secs = wall_secs,
                      .histogram = view_of(reduced_->histogram)});
}

void Hook::tell_membership(std::string_view name) {
  if (!tells_membership_) return;
  if (told_revision_ != collections_->revision()) {
    told_.clear();
    told_revision_ = collections_->revision();
  }
  if (told_.contains(name)) return;
  std::vector<std::string_view> held_by;
  for (const auto& collection : collections_->collections()) {
    if (collection->holds(name)) held_by.push_back(collection->name());
  }
  open_step();
  writer_->membership({.tensor = name, .collections = held_by});
  told_.emplace(name);
}

}  // namespace smd
