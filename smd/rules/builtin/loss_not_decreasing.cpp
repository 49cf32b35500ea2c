#include <fmt/format.h>

#include <array>
#include <cmath>
#include <deque>
#include <map>

#include "smd/collection/builtin.h"
#include "smd/rules/number_text.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  int64_t num_steps = 10;
  double diff_percent = 0;
  double increase_threshold_percent = 0;
  std::optional<Mode> mode;
};

// One loss of one worker in one mode.
struct History {
  struct Point {
    Step step = 0;
    double loss = 0;
  };
  std::deque<Point> points;  // the newest that may be a partner, and all after it
  std::optional<Step> last_check;
};

class LossNotDecreasing final : public Rule {
 public:
  LossNotDecreasing(Selection losses, const Options& options, std::shared_ptr<Log> log)
      : losses_(std::move(losses)), options_(options), log_(std::move(log)) {}

  std::vector<Selection*> selections() override { return {&losses_}; }

  Status observe(const StepView& step, Hits& hits) override {
    losses_.for_each(step, [&](const TensorRow& row) {
      const Mode mode = step.info().mode;
      Loss& loss = by_row_[{row.tensor, row.worker}];
      loss.seen[index_of(mode)] = true;
      // The histories of all modes grow, as another one may be the first some day.
      warn_if_several(step, row);
      const double now = step.number(row, Statistic::mean);
      if (options_.mode == Mode::global) {
        judge(step, row, step.info().step, now, loss.histories[index_of(Mode::global)], true, hits);
        return;
      }
      const Step number = mode == Mode::global ? step.info().step : step.info().mode_step;
      judge(step, row, number, now, loss.histories[index_of(mode)], mode == judged_mode(loss),
            hits);
    });
    return {};
  }

 private:
  struct Loss {
    std::array<History, 4> histories;  // by mode
    std::array<bool, 4> seen{};
  };

  Mode judged_mode(const Loss& loss) const {
    if (options_.mode) return *options_.mode;
    for (Mode mode : {Mode::eval, Mode::train}) {
      if (loss.seen[index_of(mode)]) return mode;
    }
    return Mode::global;
  }

  void warn_if_several(const StepView& step, const TensorRow& row) {
    if (has_warned_ || row.has(Statistic::value)) return;
    has_warned_ = true;
    log_->warning(
        fmt::format("LossNotDecreasing takes the mean of '{}', which holds several "
                    "numbers.",
                    step.tensor(row)));
  }

  void judge(const StepView& step, const TensorRow& row, Step now, double loss, History& history,
             bool is_judged, Hits& hits) {
    history.points.push_back({now, loss});
    // Partners of later steps are not older than the newest one that is far enough from this step.
    while (history.points.size() > 1 && history.points[1].step <= now - options_.num_steps) {
      history.points.pop_front();
    }
    if (!is_judged) return;
    if (history.last_check && now - *history.last_check < options_.num_steps) return;
    const History::Point before = history.points.front();
    if (before.step > now - options_.num_steps) return;
    history.last_check = now;
    if (!std::isfinite(before.loss)) return;
    const double change = 100 * (loss - before.loss) / std::fabs(before.loss);
    const auto report = [&](Op op, double threshold, std::string_view branch) {
      Violation* hit = hits.add(step, row, "change_percent", change, op, threshold);
      if (hit == nullptr) return;
      hit->with("loss", json_of(loss))
          .with("loss_before", json_of(before.loss))
          .with("step_before", Json(before.step))
          .with("branch", Json(branch));
      hits.say(fmt::format("'{}' {}: {} at step {}, {} at step {}{}.", step.tensor(row), branch,
                           number_text(before.loss), before.step, number_text(loss), now,
                           step.info().mode == Mode::global || options_.mode == Mode::global
                               ? ""
                               : fmt::format(" of {}", name_of(step.info().mode))));
    };
    if (!std::isfinite(loss)) {
      report(Op::above, options_.increase_threshold_percent, "is not a finite number any more");
    } else if (loss > before.loss) {
      if (before.loss == 0 || change > options_.increase_threshold_percent) {
        report(Op::above, options_.increase_threshold_percent, "has grown");
      }
    } else if (loss == before.loss || -change < options_.diff_percent) {
      report(Op::below, options_.diff_percent, "has stopped falling");
    }
  }

  Selection losses_;
  Options options_;
  std::shared_ptr<Log> log_;
  std::map<std::pair<uint32_t, uint32_t>, Loss> by_row_;
  bool has_warned_ = false;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "use_losses_collection",
     .type = ParameterType::boolean,
     .default_text = "true",
     .help = "Judge the collection losses, too."},
    {.name = "num_steps",
     .type = ParameterType::integer,
     .default_text = "10",
     .help = "Steps between two checks; a loss is compared with the newest one that is at least so "
             "many steps older.",
     .range = "[1,]"},
    {.name = "diff_percent",
     .type = ParameterType::real,
     .default_text = "0.1",
     .help = "Fires when the loss has fallen by less than this many percent.",
     .range = "(0,100)"},
    {.name = "increase_threshold_percent",
     .type = ParameterType::real,
     .default_text = "5",
     .help = "Fires when the loss has grown by more than this many percent.",
     .range = "(0,100)"},
    {.name = "mode",
     .type = ParameterType::text,
     .default_text = "",
     .help = "Judge this mode alone; not given, the first of EVAL, TRAIN and GLOBAL that has "
             "losses."},
};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "500"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kLosses, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext& context) {
  std::vector<std::string> collections = parameters.list("collection_names");
  if (parameters.boolean("use_losses_collection")) {
    collections.emplace_back(collection_keys::kLosses);
  }
  if (collections.empty() && !parameters.has("tensor_regex")) {
    return Error{ErrorCode::not_found,
                 "LossNotDecreasing needs collection_names, tensor_regex or "
                 "use_losses_collection to know the losses."};
  }
  Options options{.num_steps = parameters.integer("num_steps"),
                  .diff_percent = parameters.real("diff_percent"),
                  .increase_threshold_percent = parameters.real("increase_threshold_percent")};
  if (parameters.has("mode")) {
    const std::string& text = parameters.text("mode");
    SMD_TRY(options.mode, parse_mode(text.substr(text.find('.') + 1)));
  }
  SMD_TRY(auto losses, Selection::create({.what = "losses",
                                          .collections = std::move(collections),
                                          .patterns = parameters.list("tensor_regex"),
                                          .statistics = {Statistic::mean},
                                          .context = {Statistic::value}},
                                         parameters));
  return make_rule<LossNotDecreasing>(std::move(losses), options, context.log);
}

}  // namespace

extern const RuleKind loss_not_decreasing;
const RuleKind loss_not_decreasing = {
    .name = "LossNotDecreasing",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The loss has stopped falling, or grows.",
    .sees = "Each loss every num_steps steps of its mode, against its value num_steps earlier.",
    .why = "Further steps of this training cost time and change nothing, or make the model worse.",
    .fix =
        "If it never fell, check labels, loss function and that the optimizer holds the model's "
        "parameters. If it grows, lower the learning rate. If it fell before and is flat now, "
        "lower the learning rate or stop: the model may be done.",
    .parameters = kParameters,
    .collections = kCollections,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
