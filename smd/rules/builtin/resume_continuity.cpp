#include <fmt/format.h>

#include <cmath>

#include "smd/collection/builtin.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// Fewer steps are no past that could be lost.
constexpr int64_t kLeastPast = 10;
// Of the tensors of the state that must fall together.
constexpr double kMost = 0.9;

struct Counter {
  double last = -1;
  int64_t grown = 0;
};

struct State {
  double last = 0;  // mean magnitude
  int64_t seen = 0;
};

class ResumeContinuity final : public Rule {
 public:
  ResumeContinuity(Selection counters, Selection states, double fall)
      : counters_(std::move(counters)), states_(std::move(states)), fall_(fall) {}

  std::vector<Selection*> selections() override { return {&counters_, &states_}; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    counters_.for_each(step, [&](const TensorRow& row) { judge_counter(step, row, hits); });
    judge_states(step, hits);
    return {};
  }

 private:
  void judge_counter(const StepView& step, const TensorRow& row, Hits& hits) {
    const double now = step.number(row, Statistic::mean);
    if (!std::isfinite(now)) return;
    Counter& counter = counter_of_.of(row);
    if (now < counter.last && counter.grown >= kLeastPast) {
      Violation* hit = hits.add(step, row, "count", now, Op::below, counter.last);
      if (hit != nullptr) hit->with("count_before", counter.last);
      hits.say(fmt::format("'{}' falls from {:g} to {:g}: the optimizer began anew.",
                           step.tensor(row), counter.last, now));
    }
    counter.grown = now > counter.last ? counter.grown + 1 : now < counter.last ? 0 : counter.grown;
    counter.last = now;
  }

  void judge_states(const StepView& step, Hits& hits) {
    size_t judged = 0;
    fallen_.clear();
    states_.for_each(step, [&](const TensorRow& row) {
      const double now = step.number(row, Statistic::abs_mean);
      State& state = state_of_.of(row);
      if (state.seen >= kLeastPast && state.last > 0) {
        ++judged;
        if (now < fall_ * state.last) fallen_.push_back({&row, state.last});
      }
      state.last = now;
      ++state.seen;
    });
    // One tensor alone may do anything.
    if (judged < 2 || static_cast<double>(fallen_.size()) < kMost * static_cast<double>(judged)) {
      return;
    }
    for (const Fallen& one : fallen_) {
      const double now = step.number(*one.row, Statistic::abs_mean);
      Violation* hit =
          hits.add(step, *one.row, "abs_mean_ratio", now / one.before, Op::below, fall_);
      if (hit != nullptr) hit->with("abs_mean", now).with("abs_mean_before", one.before);
      state_of_.of(*one.row).seen = 0;
    }
    hits.say(
        fmt::format("The state of the optimizer is gone: '{}' and {} more of {} tensors fell "
                    "below {:g} % of what they were.",
                    step.tensor(*fallen_.front().row), fallen_.size() - 1, judged, 100 * fall_));
  }

  struct Fallen {
    const TensorRow* row = nullptr;
    double before = 0;
  };

  Selection counters_;
  Selection states_;
  double fall_;
  RowTable<Counter> counter_of_;
  RowTable<State> state_of_;
  std::vector<Fallen> fallen_;  // at this step
};

constexpr ParameterSpec kParameters[] = {
    {.name = "counter_regex",
     .type = ParameterType::list,
     .default_text = "(?i)(^|[/_.])(optimizer|optim|global|training)_?steps?$",
     .help = "Numbers that count the updates of the optimizer."},
    {.name = "fall",
     .type = ParameterType::real,
     .default_text = "0.05",
     .help = "Fires when the mean magnitude of nearly all tensors of the optimizer's state falls "
             "below this share from one saved step to the next.",
     .range = "(0,1)"},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kOptimizerVariables}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto counters, Selection::create({.what = "counters of the optimizer",
                                            .patterns = parameters.list("counter_regex"),
                                            .statistics = {Statistic::mean},
                                            .is_required = false},
                                           parameters));
  SMD_TRY(auto states,
          Selection::create({.what = "state of the optimizer",
                             .collections = {std::string(collection_keys::kOptimizerVariables)},
                             .statistics = {Statistic::abs_mean},
                             .is_required = false},
                            parameters));
  return make_rule<ResumeContinuity>(std::move(counters), std::move(states),
                                     parameters.real("fall"));
}

}  // namespace

extern const RuleKind resume_continuity;
const RuleKind resume_continuity = {
    .name = "ResumeContinuity",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "The optimizer has lost its state in the middle of the run.",
    .sees =
        "Counters of updates, which must never fall, and the state of the optimizer, whose "
        "tensors must not all shrink to nothing from one saved step to the next.",
    .why =
        "A job that is resumed with its weights alone goes on, and worse: momentum and the "
        "scales of Adam are those of a first step, the schedule may begin anew, and the loss "
        "curve hardly tells.",
    .fix =
        "Save and load the state of the optimizer, of the schedule, of the loss scale and of the "
        "sampler together with the weights, and load the optimizer after its parameters exist.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
