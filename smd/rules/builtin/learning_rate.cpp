#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "smd/rules/number_text.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// Fewer values tell nothing about a schedule.
constexpr int64_t kLeastPoints = 20;
// A step of a schedule by exactly the factor is none too many.
constexpr double kSlack = 1 + 1e-6;
constexpr int64_t kPointsBeforeJump = 10;

struct Options {
  double least = 0;
  double most = 0;
  double jump = 10;
  bool has_schedule = false;
};

// One learning rate: of one parameter group.
struct Series {
  int64_t points = 0;
  double last = 0;
  double lowest = 0;
  double largest = 0;
  bool is_told_high = false;
  bool is_told_bad = false;
};

class LearningRate final : public Rule {
 public:
  LearningRate(Selection rates, const Options& options)
      : rates_(std::move(rates)), options_(options) {}

  std::vector<Selection*> selections() override { return {&rates_}; }

  Status observe(const StepView& step, Hits& hits) override {
    worst_ = Severity::info;
    // An evaluation has no learning rate of its own.
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    rates_.for_each(step, [&](const TensorRow& row) { judge(step, row, hits); });
    return {};
  }

  Status finish(const RunView& run, Hits& hits) override {
    worst_ = Severity::info;
    series_.for_each([&](uint32_t tensor, uint32_t worker, Series& series) {
      if (series.points < kLeastPoints) return;
      const auto report = [&](double threshold, const std::string& text) {
        worst_ = Severity::warning;
        hits.set_severity(worst_);
        hits.add(run, tensor, worker, "learning_rate", series.largest, Op::below, threshold);
        hits.say(fmt::format("'{}' {}.", run.tensor(tensor), text));
      };
      if (series.largest == 0) {
        report(options_.least, fmt::format("was 0 in all {} saved steps", series.points));
      } else if (series.largest < options_.least) {
        report(options_.least, fmt::format("was never above {:.3g}, in {} saved steps",
                                           series.largest, series.points));
      } else if (options_.has_schedule && series.lowest == series.largest) {
        report(series.largest, fmt::format("has stayed at {:.3g} for {} saved steps, though there "
                                           "is a schedule",
                                           series.largest, series.points));
      }
    });
    return {};
  }

 private:
  void judge(const StepView& step, const TensorRow& row, Hits& hits) {
    const double rate = step.number(row, Statistic::mean);
    Series& series = series_.of(row);
    const auto report = [&](Severity severity, Op op, double threshold, const std::string& text) {
      worst_ = std::max(worst_, severity);
      hits.set_severity(worst_);
      Violation* hit = hits.add(step, row, "learning_rate", rate, op, threshold);
      if (hit == nullptr) return;
      if (series.points > 0) hit->with("before", series.last);
      hits.say(fmt::format("'{}' {}.", step.tensor(row), text));
    };
    if (!(rate >= 0) || std::isinf(rate)) {
      if (!std::exchange(series.is_told_bad, true)) {
        report(Severity::warning, Op::below, 0, "is " + number_text(rate));
      }
      return;
    }
    if (rate > options_.most && !std::exchange(series.is_told_high, true)) {
      report(Severity::warning, Op::above, options_.most,
             fmt::format("is {:.3g}, above {:.3g}", rate, options_.most));
    }
    if (series.points >= kPointsBeforeJump && series.last > 0 && rate > 0) {
      const double factor = rate / series.last;
      if (factor > options_.jump * kSlack) {
        // A restart of the schedule goes back to where it began; this goes beyond.
        const bool is_beyond = rate > series.largest * options_.jump * kSlack;
        report(is_beyond ? Severity::warning : Severity::info, Op::above,
               series.last * options_.jump,
               fmt::format("has jumped from {:.3g} to {:.3g}", series.last, rate));
      } else if (factor * options_.jump * kSlack < 1) {
        report(Severity::info, Op::below, series.last / options_.jump,
               fmt::format("has fallen from {:.3g} to {:.3g} at once", series.last, rate));
      }
    }
    series.lowest = series.points == 0 ? rate : std::min(series.lowest, rate);
    series.largest = std::max(series.largest, rate);
    series.last = rate;
    ++series.points;
  }

  Selection rates_;
  Options options_;
  RowTable<Series> series_;
  Severity worst_ = Severity::info;  // of this step
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    {.name = "tensor_regex",
     .type = ParameterType::list,
     .default_text = "(?i)(^|[/_.])(lr|learning_rate)([/_.-]?[a-z0-9]+)?$",
     .help = "Scalars in whose names one of these patterns is found are learning rates."},
    {.name = "optimizer",
     .type = ParameterType::text,
     .default_text = "",
     .help = "The family of the optimizer, which decides what is too high: above 0.01 for adam, "
             "above 1 for sgd and when it is not given.",
     .choices = "adam sgd"},
    {.name = "min_lr",
     .type = ParameterType::real,
     .default_text = "1e-7",
     .help = "Fires at the end when the learning rate was never as high as this.",
     .range = "[0,]"},
    {.name = "max_lr",
     .type = ParameterType::real,
     .default_text = "",
     .help = "Fires when the learning rate is above it; not given, it follows the optimizer.",
     .range = "(0,]"},
    {.name = "jump",
     .type = ParameterType::real,
     .default_text = "10",
     .help = "A change by more than this factor from one saved step to the next is reported.",
     .range = "(1,]"},
    {.name = "schedule",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "There is a schedule: a learning rate that never changes is reported."},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  const bool is_adam = parameters.has("optimizer") && parameters.text("optimizer") == "adam";
  const Options options{
      .least = parameters.real("min_lr"),
      .most = parameters.has("max_lr") ? parameters.real("max_lr") : (is_adam ? 1e-2 : 1.0),
      .jump = parameters.real("jump"),
      .has_schedule = parameters.boolean("schedule")};
  if (options.least > options.most) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("min_lr of LearningRate is {}, which is above max_lr, {}.",
                             options.least, options.most)};
  }
  SMD_TRY(auto rates, Selection::create({.what = "learning rates",
                                         .collections = parameters.list("collection_names"),
                                         .patterns = parameters.list("tensor_regex"),
                                         .statistics = {Statistic::mean}},
                                        parameters));
  return make_rule<LearningRate>(std::move(rates), options);
}

}  // namespace

extern const RuleKind learning_rate;
const RuleKind learning_rate = {
    .name = "LearningRate",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The learning rate is too high, zero, negative, constant by mistake, or jumps.",
    .sees =
        "Scalars that are named lr or learning_rate, for each parameter group; warm-up, decay "
        "to zero and steps by the factor are accepted, and restarts of a schedule are "
        "information.",
    .why =
        "A learning rate that is too high destroys what was learned, one that is zero or tiny "
        "wastes the run, and a jump is mostly a schedule that is stepped in the wrong place or "
        "was lost when the run was resumed.",
    .fix =
        "Print the learning rate of every group over the planned number of steps before a long "
        "run. Step the scheduler once per update, save it with the checkpoint, and look at the "
        "unit of its arguments: epochs or steps.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
