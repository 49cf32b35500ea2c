#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "smd/collection/builtin.h"
#include "smd/rules/fingerprint.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kGradientPrefix = "gradient/";
// A gradient that has shrunk below this share of its largest one may be too small to move anything.
constexpr double kLiveShare = 1e-3;
// Updates that become tiny at the end of a schedule may leave a tensor as it is for a while.
constexpr int64_t kMoreAfterChange = 4;
// The same for accumulation over several steps, whose length the stretches before tell.
constexpr int64_t kMoreThanBefore = 3;
constexpr int64_t kLeastSteps = 20;

struct Options {
  int64_t patience = 5;
  int64_t all_patience = 50;
};

struct Gradient {
  Step step = -1;  // of the newest one
  double largest = 0;
  bool is_live = false;
};

// A weight of one worker.
struct Weight {
  bool is_known = false;
  Fingerprint last{};
  bool was_live = false;
  int64_t steps = 0;
  bool has_gradient = false;
  bool has_changed = false;
  int64_t unchanged = 0;  // checks in a row in which others changed
};

class WeightsNotUpdated final : public Rule {
 public:
  WeightsNotUpdated(Selection weights, Selection gradients, Selection rates, const Options& options)
      : weights_(std::move(weights)),
        gradients_(std::move(gradients)),
        rates_(std::move(rates)),
        options_(options) {}

  std::vector<Selection*> selections() override { return {&weights_, &gradients_, &rates_}; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    worst_ = Severity::info;
    bool is_rate_zero = false;
    rates_.for_each(step, [&](const TensorRow& row) {
      is_rate_zero = is_rate_zero || step.number(row, Statistic::mean) == 0;
    });
    gradients_.for_each(step, [&](const TensorRow& row) {
      Gradient& gradient = gradient_of_.of(row);
      const double abs_max = step.number(row, Statistic::abs_max);
      if (std::isfinite(abs_max)) gradient.largest = std::max(gradient.largest, abs_max);
      gradient.step = step.info().step;
      gradient.is_live =
          std::isfinite(abs_max) && abs_max > 0 && abs_max >= kLiveShare * gradient.largest;
    });
    unchanged_.clear();
    any_changed_ = false;
    SMD_RETURN_IF_ERROR(weights_.for_each(
        step, [&](const TensorRow& row) -> Status { return look_at(step, row, is_rate_zero); }));
    judge(step, hits);
    return {};
  }

  // Frozen on purpose, mostly: information.
  Status finish(const RunView& run, Hits& hits) override {
    bool any_gradient = false;
    weight_of_.for_each([&](uint32_t, uint32_t, Weight& weight) {
      any_gradient = any_gradient || weight.has_gradient;
    });
    if (!any_gradient) return {};
    size_t count = 0;
    std::string first;
    weight_of_.for_each([&](uint32_t tensor, uint32_t worker, Weight& weight) {
      if (weight.steps < kLeastSteps || weight.has_gradient || weight.has_changed) return;
      if (count++ == 0) first = run.tensor(tensor);
      hits.add(run, tensor, worker, "gradients", 0, Op::equal, 0);
    });
    if (count == 0) return {};
    hits.set_severity(Severity::info);
    hits.say(
        fmt::format("'{}'{} never had a gradient and never changed: frozen on purpose, or cut "
                    "off from the loss.",
                    first, count > 1 ? fmt::format(" and {} more weights", count - 1) : ""));
    return {};
  }

 private:
  // Whether the gradient of the weight says that it must move.
  bool is_live(const StepView& step, const TensorRow& row, Weight& weight) {
    const auto& names = step.run().names->tensors;
    const auto gradient = names.find(std::string(kGradientPrefix) + step.tensor(row));
    if (!gradient) return false;
    const Gradient& found = gradient_of_.at(*gradient, row.worker);
    weight.has_gradient = weight.has_gradient || found.step >= 0;
    return found.step == step.info().step && found.is_live;
  }

  Status look_at(const StepView& step, const TensorRow& row, bool is_rate_zero) {
    Weight& weight = weight_of_.of(row);
    SMD_TRY(auto now, Fingerprint::of(step, row));
    const bool live = is_live(step, row, weight) && !is_rate_zero;
    if (weight.is_known) {
      const auto outcome = compare(weight.last, now, 0).outcome;
      if (outcome == Comparison::Outcome::different) {
        any_changed_ = weight.has_changed = true;
        weight.unchanged = 0;
      }
      // Before or after the update: the gradients of both steps must ask for a change. Numbers that
      // only pick an element stay the same while others move.
      const bool is_sure = (now.hash && weight.last.hash) || (!weight.has_changed && adds_up(now));
      if (outcome == Comparison::Outcome::equal && live && weight.was_live && is_sure) {
        unchanged_.push_back(&row);
      }
    }
    weight.is_known = true;
    weight.last = std::move(now);
    weight.was_live = live;
    ++weight.steps;
    return {};
  }

  static bool adds_up(const Fingerprint& print) {
    for (const Statistic one : {Statistic::mean, Statistic::abs_mean, Statistic::l2, Statistic::std,
                                Statistic::variance, Statistic::sum}) {
      if (print.statistics.has(one)) return true;
    }
    return false;
  }

  void judge(const StepView& step, Hits& hits) {
    if (any_changed_) {
      longest_ = std::max(longest_, none_changed_);
      none_changed_ = 0;
      for (const TensorRow* row : unchanged_) {
        Weight& weight = weight_of_.of(*row);
        ++weight.unchanged;
        const int64_t limit = options_.patience * (weight.has_changed ? kMoreAfterChange : 1);
        if (weight.unchanged == limit) report(step, *row, weight, hits);
      }
      return;
    }
    if (unchanged_.empty()) return;
    ++none_changed_;
    if (none_changed_ != std::max(options_.all_patience, kMoreThanBefore * longest_)) return;
    worst_ = Severity::error;
    hits.set_severity(worst_);
    for (const TensorRow* row : unchanged_) {
      hits.add(step, *row, "unchanged_checks", static_cast<double>(none_changed_), Op::above,
               static_cast<double>(none_changed_ - 1));
    }
    hits.say(
        fmt::format("No weight has changed in {} saved steps, though {} of them {} gradients "
                    "that are not zero.",
                    none_changed_, unchanged_.size(), unchanged_.size() == 1 ? "has" : "have"));
  }

  void report(const StepView& step, const TensorRow& row, const Weight& weight, Hits& hits) {
    worst_ = std::max(worst_, Severity::warning);
    hits.set_severity(worst_);
    Violation* hit = hits.add(step, row, "unchanged_checks", static_cast<double>(weight.unchanged),
                              Op::above, static_cast<double>(weight.unchanged - 1));
    if (hit == nullptr) return;
    hit->with("has_changed_before", Json(weight.has_changed))
        .with("compared", Json(weight.last.hash ? "values" : "statistics"));
    hits.say(
        fmt::format("'{}' has not changed in {} checks, though its gradient is not zero and "
                    "other weights change.",
                    step.tensor(row), weight.unchanged));
  }

  Selection weights_;
  Selection gradients_;
  Selection rates_;
  Options options_;
  RowTable<Weight> weight_of_;
  RowTable<Gradient> gradient_of_;
  std::vector<const TensorRow*> unchanged_;  // at this step
  bool any_changed_ = false;                 // at this step
  int64_t none_changed_ = 0;                 // checks in a row
  int64_t longest_ = 0;                      // of such stretches before
  Severity worst_ = Severity::info;          // of this step
};

constexpr ParameterSpec kParameters[] = {
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "Checks in a row in which one weight stays as it is while others change.",
     .range = "[1,]"},
    {.name = "all_patience",
     .type = ParameterType::integer,
     .default_text = "50",
     .help = "Checks in a row in which all weights stay as they are; more than the steps over "
             "which gradients are accumulated.",
     .range = "[1,]"},
};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "1"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kWeights, kSettings},
                                              {collection_keys::kGradients, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto weights, Selection::create({.what = "weights",
                                           .collections = {std::string(collection_keys::kWeights),
                                                           std::string(collection_keys::kBiases)},
                                           .exclude = {"^gradient", "^feature_importance"},
                                           .context = fingerprint_statistics()},
                                          parameters));
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .statistics = {Statistic::abs_max}},
                            parameters));
  SMD_TRY(auto rates,
          Selection::create({.what = "learning rates",
                             .patterns = {"(?i)(^|[/_.])(lr|learning_rate)([/_.-]?[a-z0-9]+)?$"},
                             .statistics = {Statistic::mean},
                             .is_required = false},
                            parameters));
  return make_rule<WeightsNotUpdated>(std::move(weights), std::move(gradients), std::move(rates),
                                      Options{.patience = parameters.integer("patience"),
                                              .all_patience = parameters.integer("all_patience")});
}

}  // namespace

extern const RuleKind weights_not_updated;
const RuleKind weights_not_updated = {
    .name = "WeightsNotUpdated",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Weights stay exactly as they are although their gradients are not zero.",
    .sees =
        "Each weight from one saved step to the next together with 'gradient/' and its name; "
        "fires when a weight does not change for patience checks while others do, or no weight "
        "changes for all_patience checks. Steps whose learning rate is zero are left out. "
        "Weights that never had a gradient are information at the end.",
    .why =
        "The optimizer does not hold this tensor, or holds a stale copy of it: the layer never "
        "learns, and nothing else tells so.",
    .fix =
        "Create the optimizer after the model was moved, wrapped or changed; pass it all "
        "parameters; do not replace parameter objects afterwards. If a layer is frozen on "
        "purpose, switch its gradients off, too, which saves time and memory.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
