#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <tuple>

#include "smd/collection/builtin.h"
#include "smd/rules/elements.h"
#include "smd/rules/quantile.h"
#include "smd/rules/rule_kind.h"
#include "smd/rules/unit_activity.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kName = "PoorWeightInitialization";
constexpr std::string_view kOriginalRegex = ".*relu_input";
constexpr size_t kMostLosses = 32;

struct Options {
  double threshold = 10;
  double distribution_range = 0.001;
  bool is_relative = false;
  int64_t patience = 5;
  int64_t steps = 10;
};

// What the rule looks at; each may be missing.
struct Sources {
  Selection inputs;
  Selection gradients;
  Selection losses;
};

class PoorWeightInitialization final : public Rule {
 public:
  PoorWeightInitialization(Sources sources, const Options& options)
      : sources_(std::move(sources)), options_(options) {}

  std::vector<Selection*> selections() override {
    return {&sources_.inputs, &sources_.gradients, &sources_.losses};
  }

  Status observe(const StepView& step, Hits& hits) override {
    sentences_.clear();
    is_analysed_ = false;
    compare_variances(step, hits);
    SMD_RETURN_IF_ERROR(measure_gradients(step, hits));
    follow_losses(step, hits);
    if (!sentences_.empty()) hits.say(fmt::format("{}", fmt::join(sentences_, " ")));
    if (is_analysed_) ++analysed_steps_;
    return {};
  }

  bool is_done() const override { return analysed_steps_ >= options_.steps; }

 private:
  struct Extremes {
    const TensorRow* least = nullptr;
    const TensorRow* most = nullptr;
    double least_variance = 0;
    double most_variance = 0;
  };
  struct Loss {
    double best = std::numeric_limits<double>::infinity();
    int64_t without_progress = 0;
    std::deque<double> series;  // the newest
  };

  void compare_variances(const StepView& step, Hits& hits) {
    std::map<uint32_t, Extremes> by_owner;
    sources_.inputs.for_each(step, [&](const TensorRow& row) {
      is_analysed_ = true;
      const double variance = step.number(row, Statistic::variance);
      if (!std::isfinite(variance)) return;
      Extremes& seen = by_owner[sources_.inputs.owner(row)];
      if (seen.least == nullptr || variance < seen.least_variance) {
        seen.least = &row;
        seen.least_variance = variance;
      }
      if (seen.most == nullptr || variance > seen.most_variance) {
        seen.most = &row;
        seen.most_variance = variance;
      }
    });
    for (const auto& [owner, seen] : by_owner) {
      const double ratio = seen.most_variance / seen.least_variance;  // NaN if all are zero
      if (!(ratio > options_.threshold)) continue;
      if (Violation* hit =
              hits.add(step, *seen.most, "variance_ratio", ratio, Op::above, options_.threshold)) {
        hit->with("largest_variance", seen.most_variance)
            .with("smallest_variance", seen.least_variance)
            .with("smallest_tensor", Json(step.tensor(*seen.least)));
      }
      sentences_.push_back(fmt::format(
          "The variance of '{}' is {:.4g} and that of '{}' {:.4g}: {} apart.",
          step.tensor(*seen.most), seen.most_variance, step.tensor(*seen.least),
          seen.least_variance,
          std::isinf(ratio) ? "infinitely far" : fmt::format("a factor of {:.4g}", ratio)));
    }
  }

  Status measure_gradients(const StepView& step, Hits& hits) {
    uint64_t narrow = 0;
    std::string first;
    SMD_RETURN_IF_ERROR(sources_.gradients.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* value, step.value(row));
      if (!has_order(value->dtype) || value->view().size() == 0) return {};
      is_analysed_ = true;
      SMD_TRY(auto numbers, to_doubles(value->view()));
      if (!std::ranges::all_of(numbers, [](double x) { return std::isfinite(x); })) return {};
      const double low = quantile(numbers, 0.05);
      const double high = quantile(numbers, 0.95);
      double spread = high - low;
      if (options_.is_relative) {
        double largest = 0;
        for (double x : numbers) largest = std::max(largest, std::fabs(x));
        if (largest > 0) spread /= largest;
      }
      if (!(spread < options_.distribution_range)) return {};
      if (Violation* hit = hits.add(
              step, row, options_.is_relative ? "relative_gradient_spread" : "gradient_spread",
              spread, Op::below, options_.distribution_range)) {
        hit->with("p5", low).with("p95", high);
      }
      if (narrow++ == 0) {
        first = fmt::format("The values of '{}' are spread over {:.4g}{}, less than {:.4g}",
                            step.tensor(row), spread, options_.is_relative ? " of the largest" : "",
                            options_.distribution_range);
      }
      return {};
    }));
    if (narrow == 1) sentences_.push_back(first + ".");
    if (narrow > 1) {
      sentences_.push_back(fmt::format("{}, and so are {} more gradients.", first, narrow - 1));
    }
    return {};
  }

  void follow_losses(const StepView& step, Hits& hits) {
    sources_.losses.for_each(step, [&](const TensorRow& row) {
      is_analysed_ = true;
      const double now = step.number(row, Statistic::mean);
      Loss& loss = losses_[{row.tensor, sources_.losses.owner(row), step.info().mode}];
      loss.series.push_back(now);
      if (loss.series.size() > kMostLosses) loss.series.pop_front();
      if (now < loss.best) {
        loss.best = now;
        loss.without_progress = 0;
        return;
      }
      ++loss.without_progress;
      if (loss.without_progress < options_.patience) return;
      const auto count = static_cast<double>(loss.without_progress);
      const auto patience = static_cast<double>(options_.patience);
      if (Violation* hit = hits.add(step, row, "steps_without_progress", count,
                                    count == patience ? Op::equal : Op::above, patience)) {
        Json series = Json::array();
        for (double one : loss.series) series.push_back(json_of(one));
        hit->with("best_loss", json_of(loss.best)).with("losses", std::move(series));
      }
      sentences_.push_back(fmt::format("'{}' has not fallen below {:.6g} for {} steps.",
                                       step.tensor(row), loss.best, loss.without_progress));
    });
  }

  Sources sources_;
  const Options options_;
  std::map<std::tuple<uint32_t, uint32_t, Mode>, Loss> losses_;
  int64_t analysed_steps_ = 0;
  // Of the step at hand.
  bool is_analysed_ = false;
  std::vector<std::string> sentences_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "activation_inputs_regex",
     .type = ParameterType::list,
     .default_text = kOriginalRegex,
     .help = "Tensors in whose names one of these patterns is found are inputs of activations."},
    {.name = "threshold",
     .type = ParameterType::real,
     .default_text = "10.0",
     .help = "Fires when the largest variance of an activation's input is more than so many times "
             "the smallest one."},
    {.name = "distribution_range",
     .type = ParameterType::real,
     .default_text = "0.001",
     .help = "Fires when the 5th and the 95th percentile of a gradient are less than this apart."},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "Fires when a loss has not fallen for so many steps.",
     .range = "[1,]"},
    {.name = "steps",
     .type = ParameterType::real,
     .default_text = "10",
     .help = "How many saved steps are looked at: the first ones that hold something to judge.",
     .range = "[1,1e15]"},
    {.name = "distribution_relative",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "Take distribution_range as a share of the gradient's largest magnitude.",
     .is_extension = true},
};

constexpr CollectionRequest::Setting kSettings[] = {{"include_regex", kOriginalRegex},
                                                    {"save_interval", "500"}};
constexpr CollectionRequest kCollections[] = {{"relu_input", kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  const double steps = parameters.real("steps");
  if (steps != std::floor(steps)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("steps of {} is '{}'; it must be a whole number.", kName, steps)};
  }
  const Options options{.threshold = parameters.real("threshold"),
                        .distribution_range = parameters.real("distribution_range"),
                        .is_relative = parameters.boolean("distribution_relative"),
                        .patience = parameters.integer("patience"),
                        .steps = static_cast<int64_t>(steps)};
  SMD_TRY(auto inputs, Selection::create({.what = "inputs of activations, gradients or losses",
                                          .patterns = parameters.list("activation_inputs_regex"),
                                          .statistics = {Statistic::variance},
                                          .is_required = false},
                                         parameters));
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .values = true,
                             .is_required = false},
                            parameters));
  SMD_TRY(auto losses, Selection::create({.what = "losses",
                                          .collections = {std::string(collection_keys::kLosses)},
                                          .statistics = {Statistic::mean},
                                          .is_required = false},
                                         parameters));
  return make_rule<PoorWeightInitialization>(
      Sources{std::move(inputs), std::move(gradients), std::move(losses)}, options);
}

}  // namespace

extern const RuleKind poor_weight_initialization;
const RuleKind poor_weight_initialization = {
    .name = kName,
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "The weights seem to start at values from which training cannot get going.",
    .sees =
        "The first steps only. Fires when the inputs of activations differ in variance from "
        "layer to layer by more than a factor of threshold, when the values of a gradient lie "
        "closer together than distribution_range, or when a loss has not fallen for patience "
        "steps. Checks whose tensors were not saved are left out.",
    .why =
        "Signals that grow or shrink from layer to layer leave some layers without gradients "
        "and others with far too large ones, and a training that starts so wastes its time.",
    .fix =
        "Use an initialisation made for the activation (He for ReLU, Glorot for tanh and "
        "sigmoid), check layers with an initialisation of their own, and normalise inputs and "
        "layers. Gradients below 0.001 are usual where losses are averaged: give "
        "distribution_relative to judge their shape instead of their size.",
    .parameters = kParameters,
    .collections = kCollections,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
