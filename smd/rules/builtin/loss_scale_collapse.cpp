#include <fmt/format.h>

#include <deque>

#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr double kHalf = 0.5 * (1 + 1e-6);
// A scale is searched for from above in the first steps.
constexpr int64_t kSearch = 100;

struct Options {
  double least = 1;
  int64_t halvings = 5;
  int64_t window = 50;
};

struct Series {
  int64_t points = 0;
  double last = 0;
  std::deque<int64_t> halved;  // when, counted in points
  bool is_told_low = false;
};

class LossScaleCollapse final : public Rule {
 public:
  LossScaleCollapse(Selection scales, const Options& options)
      : scales_(std::move(scales)), options_(options) {}

  std::vector<Selection*> selections() override { return {&scales_}; }

  Status observe(const StepView& step, Hits& hits) override {
    worst_ = Severity::info;
    scales_.for_each(step, [&](const TensorRow& row) { judge(step, row, hits); });
    return {};
  }

 private:
  void judge(const StepView& step, const TensorRow& row, Hits& hits) {
    const double scale = step.number(row, Statistic::mean);
    Series& series = series_.of(row);
    const auto report = [&](Severity severity, std::string_view metric, double value, Op op,
                            double threshold, const std::string& text) {
      worst_ = std::max(worst_, severity);
      hits.set_severity(worst_);
      Violation* hit = hits.add(step, row, metric, value, op, threshold);
      if (hit != nullptr) hit->with("scale", scale);
      hits.say(fmt::format("'{}' {}.", step.tensor(row), text));
    };
    ++series.points;
    const bool is_low = scale < options_.least;
    if (is_low && !series.is_told_low) {
      report(Severity::warning, "loss_scale", scale, Op::below, options_.least,
             fmt::format("has fallen to {:.3g}, below {:g}", scale, options_.least));
    }
    series.is_told_low = is_low;
    if (series.points > 1 && scale <= kHalf * series.last) series.halved.push_back(series.points);
    while (!series.halved.empty() && series.halved.front() <= series.points - options_.window) {
      series.halved.pop_front();
    }
    series.last = scale;
    const auto count = static_cast<int64_t>(series.halved.size());
    if (count < options_.halvings) return;
    report(series.points > kSearch ? Severity::warning : Severity::info, "halvings",
           static_cast<double>(count), Op::above, static_cast<double>(options_.halvings - 1),
           fmt::format("was lowered {} times in the last {} values, to {:.3g}", count,
                       options_.window, scale));
    series.halved.clear();
  }

  Selection scales_;
  Options options_;
  RowTable<Series> series_;
  Severity worst_ = Severity::info;  // of this step
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    {.name = "tensor_regex",
     .type = ParameterType::list,
     .default_text = "(?i)(loss|grad(ient)?)_?scale(r)?$",
     .help = "Scalars in whose names one of these patterns is found are loss scales."},
    {.name = "min_scale",
     .type = ParameterType::real,
     .default_text = "1",
     .help = "Fires when the scale is below it.",
     .range = "[0,]"},
    {.name = "halvings",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "Fires when the scale was halved so often within the window.",
     .range = "[2,]"},
    {.name = "window",
     .type = ParameterType::integer,
     .default_text = "50",
     .help = "Saved values in which halvings are counted.",
     .range = "[2,]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto scales, Selection::create({.what = "loss scales",
                                          .collections = parameters.list("collection_names"),
                                          .patterns = parameters.list("tensor_regex"),
                                          .statistics = {Statistic::mean}},
                                         parameters));
  return make_rule<LossScaleCollapse>(std::move(scales),
                                      Options{.least = parameters.real("min_scale"),
                                              .halvings = parameters.integer("halvings"),
                                              .window = parameters.integer("window")});
}

}  // namespace

extern const RuleKind loss_scale_collapse;
const RuleKind loss_scale_collapse = {
    .name = "LossScaleCollapse",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "The loss scale of mixed precision falls and falls.",
    .sees =
        "Scalars that are named loss_scale or grad_scale; fires when one is below min_scale or "
        "was halved several times within the window. In the first 100 values, in which the "
        "scale is searched for, halvings are information.",
    .why =
        "A scale is halved when gradients overflow, and that step is skipped. Many halvings "
        "mean that the model makes infinities whatever the scale is; below 1 the scale makes "
        "gradients smaller than they are, and they vanish.",
    .fix =
        "Look for the first tensor that overflows (rule NonFiniteOrigin) and compute that layer "
        "in float32, use bfloat16, or lower the learning rate.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
