#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <map>

#include "smd/collection/builtin.h"
#include "smd/rules/evaluation_means.h"
#include "smd/rules/metric_pairs.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  Step start_step = 0;
  int64_t patience = 1;
  double ratio_threshold = 0;
};

class Overfit final : public Rule {
 public:
  Overfit(Selection losses, const Options& options)
      : losses_(std::move(losses)), options_(options) {}

  std::vector<Selection*> selections() override { return {&losses_}; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().step < options_.start_step) return {};
    const Mode mode = step.info().mode;
    if (means_.is_ended_by(mode)) judge(step.run(), means_.close(step.run()), hits);
    rows_.clear();
    losses_.for_each(step, [&](const TensorRow& row) { rows_.push_back(&row); });
    means_.add(step, rows_);
    if (mode == Mode::global) judge_pairs(step, hits);
    return {};
  }

  Status finish(const RunView& run, Hits& hits) override {
    judge(run, means_.finish(run, hits), hits);
    return {};
  }

  std::optional<std::string> missing() const override {
    if (comparisons_ > 0) return std::nullopt;
    return "It compares losses of TRAIN with losses of EVAL, or metrics such as 'train-rmse' with "
           "'validation-rmse', and the run has no such two.";
  }

 private:
  void judge(const RunView& run, const std::vector<EvaluationMeans::Means>& found, Hits& hits) {
    for (const auto& [key, train, eval] : found) {
      int64_t& counter = counters_[key];
      const double ratio = count(train.value(), eval.value(), false, counter);
      if (counter < options_.patience) continue;
      say(run.tensor(key.first), train.value(), eval.value(), ratio, hits);
      Violation* hit =
          hits.add(run, key.first, key.second, "ratio", ratio, Op::above, options_.ratio_threshold);
      describe(hit, train.value(), eval.value(), counter);
      if (hit != nullptr) {
        hit->with("train_count", Json(train.count)).with("validation_count", Json(eval.count));
      }
    }
  }

  // Each step is one comparison.
  void judge_pairs(const StepView& step, Hits& hits) {
    for (const MetricPair& pair : find_metric_pairs(step, rows_)) {
      const double train = step.number(*pair.train, Statistic::mean);
      const double validation = step.number(*pair.validation, Statistic::mean);
      if (!std::isfinite(train) || !std::isfinite(validation)) continue;
      int64_t& counter = counters_[{pair.validation->tensor, pair.validation->worker}];
      const double ratio = count(train, validation, pair.rises, counter);
      if (counter < options_.patience) continue;
      say(step.tensor(*pair.validation), train, validation, ratio, hits);
      Violation* hit =
          hits.add(step, *pair.validation, "ratio", ratio, Op::above, options_.ratio_threshold);
      describe(hit, train, validation, counter);
      if (hit != nullptr) hit->with("train_tensor", Json(step.tensor(*pair.train)));
    }
  }

  // The ratio by which validation is worse; `counter` goes on or begins anew.
  double count(double train, double validation, bool rises, int64_t& counter) {
    ++comparisons_;
    const double gap = rises ? train - validation : validation - train;
    const double infinity = std::numeric_limits<double>::infinity();
    const double ratio = train != 0 ? gap / std::fabs(train) : gap > 0 ? infinity : 0;
    const bool is_exceeded = train != 0 ? ratio > options_.ratio_threshold : gap > 0;
    counter = is_exceeded ? counter + 1 : 0;
    return ratio;
  }

  static void describe(Violation* hit, double train, double validation, int64_t counter) {
    if (hit == nullptr) return;
    hit->with("train_mean", train)
        .with("validation_mean", validation)
        .with("counter", Json(counter));
  }

  // About the first violation.
  static void say(const std::string& tensor, double train, double validation, double ratio,
                  Hits& hits) {
    if (!hits.empty()) return;
    hits.say(
        fmt::format("'{}' is {:.6g} on the validation data and {:.6g} on the training data, "
                    "which is worse by {:.4g} %.",
                    tensor, validation, train, 100 * ratio));
  }

  Selection losses_;
  Options options_;
  EvaluationMeans means_;
  std::map<EvaluationMeans::Key, int64_t> counters_;
  std::vector<const TensorRow*> rows_;
  uint64_t comparisons_ = 0;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "tensor_regex",
     .type = ParameterType::list,
     .default_text = "",
     .help = "Losses in whose names one of these patterns is found are judged; not given, those of "
             "the collection losses."},
    {.name = "start_step",
     .type = ParameterType::integer,
     .default_text = "0",
     .help = "Steps before this one are left out.",
     .range = "[0,]"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "1",
     .help = "Fires when so many comparisons in a row exceed the threshold.",
     .range = "[1,]"},
    {.name = "ratio_threshold",
     .type = ParameterType::real,
     .default_text = "0.1",
     .help = "By which part of the training loss the validation loss may lie above it."},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  std::vector<std::string> collections;
  if (!parameters.has("tensor_regex")) collections.emplace_back(collection_keys::kLosses);
  SMD_TRY(auto losses, Selection::create({.what = "losses",
                                          .collections = std::move(collections),
                                          .patterns = parameters.list("tensor_regex"),
                                          .statistics = {Statistic::mean}},
                                         parameters));
  return make_rule<Overfit>(std::move(losses),
                            Options{.start_step = parameters.integer("start_step"),
                                    .patience = parameters.integer("patience"),
                                    .ratio_threshold = parameters.real("ratio_threshold")});
}

}  // namespace

extern const RuleKind overfit;
const RuleKind overfit = {
    .name = "Overfit",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The validation loss has left the training loss behind.",
    .sees =
        "The mean loss of each evaluation against the mean training loss since the evaluation "
        "before it, or train and validation metrics of the same step where a job has no modes; "
        "fires when validation is worse by more than ratio_threshold of the training loss, "
        "patience times in a row.",
    .why =
        "The model learns the training data by heart: what it gains there is not worth anything "
        "on new data, and the gap usually grows from here.",
    .fix =
        "Use the checkpoint with the best validation loss. To get further, add data or "
        "augmentation, regularise (weight decay, dropout, fewer or shallower trees), or make the "
        "model smaller. If the gap was there from the first evaluation, check that both losses "
        "are computed the same way and that both sets come from the same source.",
    .parameters = kParameters,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
