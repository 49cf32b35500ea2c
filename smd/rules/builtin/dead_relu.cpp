#include <fmt/format.h>

#include "smd/rules/rule_kind.h"
#include "smd/rules/unit_activity.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kName = "DeadRelu";
constexpr std::string_view kOriginalRegex = ".*relu_output";
constexpr size_t kMostUnits = 16;

struct Options {
  double inactivity = 1;
  double layer = 50;
  std::optional<int64_t> unit_axis;
};

class DeadRelu final : public Rule {
 public:
  DeadRelu(Selection outputs, const Options& options, std::shared_ptr<Log> log)
      : outputs_(std::move(outputs)), options_(options), log_(std::move(log)) {}

  std::vector<Selection*> selections() override { return {&outputs_}; }

  Status observe(const StepView& step, Hits& hits) override {
    return outputs_.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* value, step.value(row));
      return judge(step, row, *value, hits);
    });
  }

 private:
  Status judge(const StepView& step, const TensorRow& row, const TensorValue& value, Hits& hits) {
    if (!has_order(value.dtype) || value.view().size() == 0) return {};
    const auto layout = unit_layout(value.shape, options_.unit_axis);
    if (!layout) return warn_of_axis(step, row), Status();
    SMD_TRY(const auto active, count_active(value.view(), *layout, {.above = 0}));
    int64_t dead = 0;
    for (int64_t count : active) {
      dead += is_inactive(count, layout->samples(), options_.inactivity) ? 1 : 0;
    }
    const double percent = 100 * static_cast<double>(dead) / static_cast<double>(layout->units);
    if (!(percent > options_.layer)) return {};
    const bool is_first = hits.empty();
    Violation* hit = hits.add(step, row, "dead_percent", percent, Op::above, options_.layer);
    if (hit == nullptr) return {};
    Json listed = Json::array();
    for (size_t unit = 0; unit < active.size() && listed.size() < kMostUnits; ++unit) {
      if (is_inactive(active[unit], layout->samples(), options_.inactivity)) listed.push_back(unit);
    }
    hit->with("dead_units", Json(dead))
        .with("units", Json(layout->units))
        .with("samples", Json(layout->samples()))
        .with("unit_indices", std::move(listed));
    if (is_first) {
      hits.say(fmt::format("{} of the {} units of '{}' put out zero for nearly all of {} samples.",
                           dead, layout->units, step.tensor(row), layout->samples()));
    }
    return {};
  }

  void warn_of_axis(const StepView& step, const TensorRow& row) {
    if (has_warned_) return;
    has_warned_ = true;
    log_->warning(fmt::format("{} does not judge '{}', which has no axis {}.", kName,
                              step.tensor(row), *options_.unit_axis));
  }

  Selection outputs_;
  const Options options_;
  const std::shared_ptr<Log> log_;
  bool has_warned_ = false;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "tensor_regex",
     .type = ParameterType::list,
     .default_text = ".*relu_output|.*ReLU_output",
     .help = "Tensors in whose names one of these patterns is found are outputs of ReLUs; "
             ".*relu_output alone with compat."},
    kThresholdInactivity,
    kThresholdLayer,
    kUnitAxis,
};

constexpr CollectionRequest::Setting kSettings[] = {{"include_regex", kOriginalRegex},
                                                    {"save_interval", "500"}};
constexpr CollectionRequest kCollections[] = {{"relu_output", kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext& context) {
  std::vector<std::string> patterns = parameters.list("tensor_regex");
  if (parameters.boolean("compat") && !parameters.is_given("tensor_regex")) {
    patterns = {std::string(kOriginalRegex)};
  }
  Options options{.inactivity = parameters.real(kThresholdInactivity.name),
                  .layer = parameters.real(kThresholdLayer.name)};
  if (parameters.has(kUnitAxis.name)) options.unit_axis = parameters.integer(kUnitAxis.name);
  SMD_TRY(auto outputs,
          Selection::create(
              {.what = "outputs of ReLUs", .patterns = std::move(patterns), .values = true},
              parameters));
  return make_rule<DeadRelu>(std::move(outputs), options, context.log);
}

}  // namespace

extern const RuleKind dead_relu;
const RuleKind dead_relu = {
    .name = kName,
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Most units of a ReLU layer put out zero whatever they are shown.",
    .sees =
        "The outputs of each ReLU layer at one step. A unit is dead when it is above zero in "
        "less than threshold_inactivity percent of the batch's samples; fires when more than "
        "threshold_layer percent of the units are dead.",
    .why =
        "A unit that is zero for every sample gets no gradient, so it cannot recover: the model "
        "has lost that part of its size.",
    .fix =
        "Lower the learning rate, check that biases have not run far below zero, use an "
        "initialisation made for ReLU, or leaky ReLU or GELU instead. For convolutions give "
        "unit_axis=1 to judge channels rather than single places. Small batches call units dead "
        "early: save larger ones.",
    .parameters = kParameters,
    .collections = kCollections,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
