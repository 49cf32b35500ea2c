#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "smd/rules/quantile.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// The first steps compile, allocate and fill caches.
constexpr int64_t kFirstSteps = 10;

struct Options {
  double least_secs = 30;
  double factor = 20;
  double alone = 3;
};

class TrainingPause final : public Rule {
 public:
  TrainingPause(Selection tensors, const Options& options)
      : tensors_(std::move(tensors)), options_(options) {}

  std::vector<Selection*> selections() override { return {&tensors_}; }

  Status observe(const StepView& step, Hits&) override {
    tensors_.for_each(step, [](const TensorRow&) {});
    const double now = step.wall_secs();
    if (now <= 0) return {};
    if (last_secs_ > 0 && ++steps_ > kFirstSteps) {
      const double pause = now - last_secs_;
      pauses_.push_back(pause);
      if (pause > longest_) {
        second_ = longest_;
        longest_ = pause;
        at_ = step.info();
        at_secs_ = now;
      } else {
        second_ = std::max(second_, pause);
      }
    }
    last_secs_ = now;
    return {};
  }

  // At the end alone: pauses that come again are checkpoints and evaluations.
  Status finish(const RunView&, Hits& hits) override {
    if (!at_) return {};
    const double median = quantile(pauses_, 0.5);
    const double bound =
        std::max({options_.least_secs, options_.factor * median, options_.alone * second_});
    if (!(longest_ > bound)) return {};
    hits.set_step(*at_, at_secs_);
    Violation* hit = hits.add("", "pause_secs", longest_, Op::above, bound);
    if (hit != nullptr) hit->with("median_secs", median).with("second_longest_secs", second_);
    hits.say(
        fmt::format("Step {} came {:.3g} s after the one before it; others take {:.3g} s, and "
                    "never more than {:.3g} s.",
                    at_->step, longest_, median, second_));
    return {};
  }

 private:
  Selection tensors_;
  Options options_;
  double last_secs_ = 0;
  int64_t steps_ = 0;
  std::vector<double> pauses_;
  double longest_ = 0;
  double second_ = 0;
  std::optional<StepInfo> at_;  // of the longest
  double at_secs_ = 0;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "least_secs",
     .type = ParameterType::real,
     .default_text = "30",
     .help = "Shorter pauses are never worth an alarm.",
     .range = "(0,]"},
    {.name = "factor",
     .type = ParameterType::real,
     .default_text = "20",
     .help = "A pause must be longer than so many usual steps.",
     .range = "(1,]"},
    {.name = "alone",
     .type = ParameterType::real,
     .default_text = "3",
     .help = "It must be so many times as long as any other one.",
     .range = "(1,]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto tensors, Selection::create({.what = "tensors"}, parameters));
  return make_rule<TrainingPause>(std::move(tensors),
                                  Options{.least_secs = parameters.real("least_secs"),
                                          .factor = parameters.real("factor"),
                                          .alone = parameters.real("alone")});
}

}  // namespace

extern const RuleKind training_pause;
const RuleKind training_pause = {
    .name = "TrainingPause",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The training stood still once, for much longer than ever else.",
    .sees =
        "The times at which steps were recorded, at the end of the run; fires when one pause is "
        "many times as long as a usual step and as any other pause. Pauses that come again, such "
        "as checkpoints and evaluations, are left alone. StalledTrainingRule watches a run that "
        "goes on.",
    .why =
        "A file system that hangs, a node that swaps, or a collective operation that waits for a "
        "lost rank costs the time of all machines, and it comes back.",
    .fix =
        "Look into the logs of the machines at the time of the named step: storage, network, "
        "memory, preemption.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
