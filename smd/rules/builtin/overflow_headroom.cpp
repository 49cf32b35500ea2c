#include <fmt/format.h>

#include <cmath>
#include <deque>
#include <optional>

#include "smd/base/nearest.h"
#include "smd/collection/builtin.h"
#include "smd/rules/elements.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kTypes[] = {"float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
                                       "float32"};

struct Options {
  double share = 0.1;
  int64_t trend_steps = 50;
  std::optional<DType> dtype;  // nullopt: that of the values
};

struct Track {
  struct Point {
    Step step = 0;
    double abs_max = 0;
  };
  std::optional<DType> dtype;
  std::deque<Point> points;
  bool is_above = false;
};

// Steps until the magnitude reaches `limit`, by a straight line through the logarithms; nullopt: it
// does not grow.
std::optional<double> steps_left(const std::deque<Track::Point>& points, double limit) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const Track::Point& point : points) {
    if (!(point.abs_max > 0)) continue;
    const auto x = static_cast<double>(point.step - points.front().step);
    const double y = std::log(point.abs_max);
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  const double spread = n * sxx - sx * sx;
  if (n < 5 || !(spread > 0)) return std::nullopt;
  const double slope = (n * sxy - sx * sy) / spread;
  if (!(slope > 0)) return std::nullopt;
  const double left = std::log(limit / points.back().abs_max) / slope;
  return left >= 0 ? std::optional(left) : std::nullopt;
}

class OverflowHeadroom final : public Rule {
 public:
  OverflowHeadroom(Selection tensors, Selection gradients, const Options& options)
      : tensors_(std::move(tensors)), gradients_(std::move(gradients)), options_(options) {}

  std::vector<Selection*> selections() override { return {&tensors_}; }

  Status observe(const StepView& step, Hits& hits) override {
    worst_ = Severity::info;
    return tensors_.for_each(
        step, [&](const TensorRow& row) -> Status { return judge(step, row, hits); });
  }

 private:
  Status judge(const StepView& step, const TensorRow& row, Hits& hits) {
    Track& track = tracks_.of(row, step.info().mode);
    if (!track.dtype) {
      track.dtype = options_.dtype;
      if (!track.dtype) {
        SMD_TRY(const TensorValue* value, step.value(row));
        track.dtype = value->dtype;
      }
    }
    const DType dtype = *track.dtype;
    const auto limit = max_finite(dtype);
    if (!limit || dtype == DType::float64 || dtype == DType::complex128) return {};
    const double abs_max = step.number(row, Statistic::abs_max);
    if (!std::isfinite(abs_max)) return {};
    track.points.push_back({step.info().step, abs_max});
    if (static_cast<int64_t>(track.points.size()) > options_.trend_steps) track.points.pop_front();
    const double share = abs_max / *limit;
    // Masks hold the largest number itself.
    const bool is_above = share > options_.share && share < 1;
    const bool is_new = is_above && !track.is_above;
    track.is_above = is_above;
    if (!is_new) return {};

    // Loss scales and scales of 8-bit types are chosen so that the range is used up.
    const bool is_scaled = size_of(dtype) == 1 || gradients_.holds(step.run(), row.tensor);
    worst_ = std::max(worst_, is_scaled ? Severity::info : Severity::warning);
    hits.set_severity(worst_);
    Violation* hit = hits.add(step, row, "share_of_range", share, Op::above, options_.share);
    if (hit == nullptr) return {};
    const auto left = steps_left(track.points, *limit);
    hit->with("abs_max", abs_max)
        .with("max_finite", *limit)
        .with("dtype", Json(name_of(dtype)))
        .with("first_abs_max", track.points.front().abs_max)
        .with("steps_to_overflow", left.value_or(std::nan("")));
    hits.say(fmt::format("'{}' has come up to {:.6g}, {:.0f} % of what {} can hold{}.",
                         step.tensor(row), abs_max, 100 * share, name_of(dtype),
                         left ? fmt::format("; growing like this, it overflows in about {:.0f} "
                                            "steps",
                                            *left)
                              : ""));
    return {};
  }

  Selection tensors_;
  Selection gradients_;  // to tell them apart
  Options options_;
  RowTable<Track> tracks_;
  Severity worst_ = Severity::info;  // of this step
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "share",
     .type = ParameterType::real,
     .default_text = "0.1",
     .help = "Fires when the largest magnitude is above this share of the largest number of the "
             "type.",
     .range = "(0,1)"},
    {.name = "trend_steps",
     .type = ParameterType::integer,
     .default_text = "50",
     .help = "Saved steps from which the growth is estimated.",
     .range = "[5,]"},
    {.name = "dtype",
     .type = ParameterType::text,
     .default_text = "",
     .help = "The element type while training, where values were not saved or were saved in a "
             "wider one: float16, bfloat16, float8_e4m3fn, float8_e5m2 or float32."},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  Options options{.share = parameters.real("share"),
                  .trend_steps = parameters.integer("trend_steps")};
  if (parameters.has("dtype")) {
    const std::string& name = parameters.text("dtype");
    if (std::ranges::find(kTypes, name) == std::end(kTypes)) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("dtype of OverflowHeadroom is '{}'; it must be float16, bfloat16, "
                               "float8_e4m3fn, float8_e5m2 or float32.{}",
                               name, did_you_mean(name, kTypes))};
    }
    options.dtype = dtype_from_name(name);
  }
  // Without the type there is nothing to compare with.
  SMD_TRY(auto tensors, Selection::create({.what = "tensors",
                                           .collections = parameters.list("collection_names"),
                                           .patterns = parameters.list("tensor_regex"),
                                           .exclude = {"(?i)mask"},
                                           .statistics = {Statistic::abs_max},
                                           .values = !options.dtype},
                                          parameters));
  SMD_TRY(
      auto gradients,
      Selection::create({.collections = {std::string(collection_keys::kGradients)}}, parameters));
  return make_rule<OverflowHeadroom>(std::move(tensors), std::move(gradients), options);
}

}  // namespace

extern const RuleKind overflow_headroom;
const RuleKind overflow_headroom = {
    .name = "OverflowHeadroom",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Magnitudes come near the largest number that their type can hold.",
    .sees =
        "The largest magnitude of each tensor against the largest number of its element type; "
        "fires when it has risen above the share, and tells when it will overflow if it grows "
        "as before. Gradients and 8-bit types, which are scaled on purpose, are reported as "
        "information.",
    .why =
        "The next larger value becomes infinity, and everything computed from it NaN. In "
        "float16 that is 65504, which activations of large models do reach.",
    .fix =
        "Use bfloat16, which has the range of float32, compute the named layer in float32, add "
        "normalisation before it, or lower the loss scale if it is a gradient.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
