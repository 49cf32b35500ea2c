#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>

#include "smd/collection/builtin.h"
#include "smd/rules/evaluation_means.h"
#include "smd/rules/metric_pairs.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  double ratio = 2;
  double improvement = 0.05;
  int64_t patience = 3;
};

// One loss of one worker, or a pair of metrics.
struct Track {
  double first_train = 0;
  std::deque<double> bests;  // the best evaluation up to each of the last ones
  int64_t checks = 0;
  int64_t apart = 0;  // in a row
};

class GeneralizationGap final : public Rule {
 public:
  GeneralizationGap(Selection losses, const Options& options)
      : losses_(std::move(losses)), options_(options) {}

  std::vector<Selection*> selections() override { return {&losses_}; }

  Status observe(const StepView& step, Hits& hits) override {
    const Mode mode = step.info().mode;
    if (means_.is_ended_by(mode)) judge(step.run(), means_.close(step.run()), hits);
    rows_.clear();
    losses_.for_each(step, [&](const TensorRow& row) { rows_.push_back(&row); });
    means_.add(step, rows_);
    if (mode != Mode::global) return {};
    for (const MetricPair& pair : find_metric_pairs(step, rows_)) {
      if (pair.rises) continue;
      judge(step.run(), {pair.validation->tensor, pair.validation->worker},
            step.number(*pair.train, Statistic::mean),
            step.number(*pair.validation, Statistic::mean), hits);
    }
    return {};
  }

  Status finish(const RunView& run, Hits& hits) override {
    judge(run, means_.finish(run, hits), hits);
    return {};
  }

  std::optional<std::string> missing() const override {
    if (has_judged_) return std::nullopt;
    return "It compares losses of TRAIN with losses of EVAL, or metrics such as 'train-rmse' with "
           "'validation-rmse', and the run has no such two.";
  }

 private:
  using Key = EvaluationMeans::Key;

  void judge(const RunView& run, const std::vector<EvaluationMeans::Means>& found, Hits& hits) {
    for (const auto& [key, train, eval] : found) {
      judge(run, key, train.value(), eval.value(), hits);
    }
  }

  void judge(const RunView& run, const Key& key, double train, double eval, Hits& hits) {
    if (!std::isfinite(train) || !std::isfinite(eval) || train < 0) return;
    has_judged_ = true;
    Track& track = tracks_[key];
    if (track.checks++ == 0) track.first_train = train;
    // The best one before the last few.
    const bool has_past = static_cast<int64_t>(track.bests.size()) >= options_.patience;
    const double past = has_past ? track.bests.front() : 0;
    track.bests.push_back(track.bests.empty() ? eval : std::min(track.bests.back(), eval));
    if (static_cast<int64_t>(track.bests.size()) > options_.patience) track.bests.pop_front();
    const bool is_apart = has_past && eval > options_.ratio * train &&
                          track.bests.back() > (1 - options_.improvement) * past &&
                          train < track.first_train;
    track.apart = is_apart ? track.apart + 1 : 0;
    if (track.apart != options_.patience) return;
    Violation* hit =
        hits.add(run, key.first, key.second, "ratio", eval / train, Op::above, options_.ratio);
    if (hit != nullptr) {
      hit->with("train", train).with("validation", eval).with("best", track.bests.back());
    }
    hits.say(
        fmt::format("'{}' is {:.4g} in evaluations and {:.4g} in training, and evaluations "
                    "have not become better for a while.",
                    run.tensor(key.first), eval, train));
  }

  Selection losses_;
  Options options_;
  EvaluationMeans means_;
  std::map<Key, Track> tracks_;
  std::vector<const TensorRow*> rows_;
  bool has_judged_ = false;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "ratio",
     .type = ParameterType::real,
     .default_text = "2",
     .help = "A loss of evaluations above this many times the loss of training counts.",
     .range = "(1,]"},
    {.name = "improvement",
     .type = ParameterType::real,
     .default_text = "0.05",
     .help = "Evaluations whose best one has improved by at least this share over the last ones "
             "do not count.",
     .range = "[0,1)"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "3",
     .help = "So many evaluations in a row are an alarm.",
     .range = "[1,]"},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kLosses}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto losses, select_series(parameters, "losses", collection_keys::kLosses));
  return make_rule<GeneralizationGap>(std::move(losses),
                                      Options{.ratio = parameters.real("ratio"),
                                              .improvement = parameters.real("improvement"),
                                              .patience = parameters.integer("patience")});
}

}  // namespace

extern const RuleKind generalization_gap;
const RuleKind generalization_gap = {
    .name = "GeneralizationGap",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The training loss falls away from that of evaluations, which no longer improves.",
    .sees =
        "The mean loss of each evaluation, the mean training loss since the one before, and the "
        "best evaluation so far; fires when evaluations are worse than training by the ratio and "
        "have stopped to improve, several times in a row.",
    .why =
        "The model learns its training samples by heart. Unlike a gap of a few percent, which "
        "healthy trainings have, this one does not close again.",
    .fix =
        "Keep the model of the best evaluation and stop here. Use more or augmented data, weight "
        "decay or dropout, or a smaller model; look for samples of the training set that "
        "repeat.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
