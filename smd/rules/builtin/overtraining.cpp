#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "smd/collection/builtin.h"
#include "smd/rules/metric_pairs.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  int64_t patience_train = 0;
  int64_t patience_validation = 0;
  double delta = 0;
  bool is_relative = false;  // delta is a part of the best loss
};

// The best loss so far and how many came after it.
struct Track {
  double best = std::numeric_limits<double>::infinity();
  Step best_step = -1;
  int64_t counter = 0;
  bool has_any = false;

  void add(double loss, Step step, const Options& options) {
    has_any = true;
    const double least = options.is_relative ? options.delta * std::fabs(best) : options.delta;
    const bool is_better = best_step < 0 ? std::isfinite(loss) : loss < best - least;
    if (!is_better || !std::isfinite(loss)) {
      ++counter;
      return;
    }
    best = loss;
    best_step = step;
    counter = 0;
  }
};

class Overtraining final : public Rule {
 public:
  Overtraining(Selection losses, const Options& options)
      : losses_(std::move(losses)), options_(options) {}

  std::vector<Selection*> selections() override { return {&losses_}; }

  Status observe(const StepView& step, Hits& hits) override {
    const Mode mode = step.info().mode;
    rows_.clear();
    losses_.for_each(step, [&](const TensorRow& row) { rows_.push_back(&row); });
    if (mode == Mode::predict) return {};
    std::vector<MetricPair> pairs;
    if (mode == Mode::global) pairs = find_metric_pairs(step, rows_);
    for (const MetricPair& pair : pairs) {
      Loss& loss = by_row_[{pair.validation->tensor, pair.validation->worker}];
      add(step, *pair.train, pair.rises, loss.train);
      add(step, *pair.validation, pair.rises, loss.validation);
      judge(step, *pair.validation, loss, pair.rises, hits);
    }
    for (const TensorRow* row : rows_) {
      const bool is_paired = std::ranges::any_of(pairs, [&](const MetricPair& pair) {
        return pair.train == row || pair.validation == row;
      });
      if (is_paired) continue;
      // A job without modes trains.
      const auto name = mode == Mode::global ? parse_metric_name(step.tensor(*row)) : std::nullopt;
      const bool is_validation = mode == Mode::eval || (name && !name->is_training);
      const bool rises = name && name->rises;
      Loss& loss = by_row_[{row->tensor, row->worker}];
      add(step, *row, rises, is_validation ? loss.validation : loss.train);
      judge(step, *row, loss, rises, hits);
    }
    return {};
  }

  std::optional<std::string> missing() const override {
    for (const auto& [key, loss] : by_row_) {
      if (loss.train.has_any) return std::nullopt;
    }
    return "It needs losses of the training, and the run has those of other modes only.";
  }

 private:
  struct Loss {
    Track train;
    Track validation;
  };

  // Rising metrics with their sign reversed.
  void add(const StepView& step, const TensorRow& row, bool rises, Track& track) const {
    const double number = step.number(row, Statistic::mean);
    track.add(rises ? -number : number, step.info().step, options_);
  }

  void judge(const StepView& step, const TensorRow& row, const Loss& loss, bool rises,
             Hits& hits) const {
    if (!loss.train.has_any || loss.train.counter < options_.patience_train) return;
    if (loss.validation.has_any && loss.validation.counter < options_.patience_validation) return;
    const auto count = static_cast<double>(loss.train.counter);
    const auto patience = static_cast<double>(options_.patience_train);
    if (hits.empty()) {
      const std::string validation =
          loss.validation.has_any ? fmt::format(" and {} of validation", loss.validation.counter)
                                  : "";
      const std::string best =
          loss.train.best_step < 0
              ? "it was never a finite number"
              : fmt::format("its best value is {:.6g} at step {}",
                            rises ? -loss.train.best : loss.train.best, loss.train.best_step);
      hits.say(fmt::format("'{}' has not improved for {} saved steps of training{}; {}.",
                           step.tensor(row), loss.train.counter, validation, best));
    }
    Violation* hit = hits.add(step, row, "train_steps_without_improvement", count,
                              count > patience ? Op::above : Op::equal, patience);
    if (hit != nullptr) {
      describe(*hit, "train", loss.train, rises);
      if (loss.validation.has_any) {
        describe(*hit, "validation", loss.validation, rises);
        hit->with("validation_patience", Json(options_.patience_validation));
      }
    }
  }

  static void describe(Violation& hit, const std::string& which, const Track& track, bool rises) {
    hit.with(which + "_best", json_of(rises ? -track.best : track.best))
        .with(which + "_best_step", Json(track.best_step))
        .with(which + "_counter", Json(track.counter));
  }

  Selection losses_;
  Options options_;
  std::map<std::pair<uint32_t, uint32_t>, Loss> by_row_;
  std::vector<const TensorRow*> rows_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "patience_train",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "After how many training losses without improvement it fires.",
     .range = "[1,]"},
    {.name = "patience_validation",
     .type = ParameterType::integer,
     .default_text = "10",
     .help = "How many validation losses without improvement there must be, too, if there are any.",
     .range = "[1,]"},
    {.name = "delta",
     .type = ParameterType::real,
     .default_text = "0.01",
     .help = "A loss is an improvement if it is below the best one by more than this.",
     .range = "[0,]"},
    {.name = "delta_relative",
     .type = ParameterType::real,
     .default_text = "",
     .help = "Instead of delta: the part of the best loss by which an improvement is below it. For "
             "losses on a small scale.",
     .range = "[0,1)",
     .is_extension = true},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  const bool is_relative = parameters.has("delta_relative");
  if (is_relative && parameters.is_given("delta")) {
    return Error{ErrorCode::invalid_argument,
                 "Overtraining has both delta and delta_relative; give one of them."};
  }
  SMD_TRY(auto losses, Selection::create({.what = "losses",
                                          .collections = {std::string(collection_keys::kLosses)},
                                          .statistics = {Statistic::mean}},
                                         parameters));
  return make_rule<Overtraining>(
      std::move(losses), Options{.patience_train = parameters.integer("patience_train"),
                                 .patience_validation = parameters.integer("patience_validation"),
                                 .delta = parameters.real(is_relative ? "delta_relative" : "delta"),
                                 .is_relative = is_relative});
}

}  // namespace

extern const RuleKind overtraining;
const RuleKind overtraining = {
    .name = "Overtraining",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "Neither the training loss nor the validation loss improves any more.",
    .sees =
        "The best training loss and the best validation loss so far; fires when the last "
        "patience_train training losses and, if there are any, the last patience_validation "
        "validation losses brought no improvement of more than delta.",
    .why =
        "The model sits in a minimum. Further steps cost time and money, and what they still "
        "change fits the training data rather than the task.",
    .fix =
        "Stop here and use the checkpoint with the best validation loss; early stopping does so "
        "by itself. If the loss is still too high, lower the learning rate or change the model "
        "instead of training longer. Give delta_relative if the losses are on a small scale.",
    .parameters = kParameters,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
