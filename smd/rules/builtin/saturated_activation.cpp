#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "smd/rules/elements.h"
#include "smd/rules/rule_kind.h"
#include "smd/rules/unit_activity.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kName = "SaturatedActivation";

struct Bounds {
  double low = 0;
  double high = 0;
};

struct Options {
  Bounds tanh;
  Bounds sigmoid;
  double inactivity = 1;
  double layer = 50;
  std::optional<int64_t> unit_axis;
};

class SaturatedActivation final : public Rule {
 public:
  SaturatedActivation(Selection inputs, const Options& options, std::shared_ptr<Log> log)
      : inputs_(std::move(inputs)), options_(options), log_(std::move(log)) {}

  std::vector<Selection*> selections() override { return {&inputs_}; }

  Status observe(const StepView& step, Hits& hits) override {
    return inputs_.for_each(step, [&](const TensorRow& row) -> Status {
      const Bounds* bounds = bounds_of(step.tensor(row));
      if (bounds == nullptr) {
        warn(fmt::format("'{}', whose name tells neither tanh nor sigmoid", step.tensor(row)));
        return {};
      }
      SMD_TRY(const TensorValue* value, step.value(row));
      return judge(step, row, *value, *bounds, hits);
    });
  }

 private:
  // nullptr: the name does not tell the kind of activation. The last word counts, as it belongs to
  // the innermost module.
  const Bounds* bounds_of(std::string_view tensor) const {
    std::string name(tensor);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    const size_t tanh = name.rfind("tanh");
    const size_t sigmoid = name.rfind("sigmoid");
    if (tanh == std::string::npos && sigmoid == std::string::npos) return nullptr;
    if (tanh == std::string::npos) return &options_.sigmoid;
    if (sigmoid == std::string::npos) return &options_.tanh;
    return tanh > sigmoid ? &options_.tanh : &options_.sigmoid;
  }

  Status judge(const StepView& step, const TensorRow& row, const TensorValue& value,
               const Bounds& bounds, Hits& hits) {
    if (!has_order(value.dtype) || value.view().size() == 0) return {};
    const auto layout = unit_layout(value.shape, options_.unit_axis);
    if (!layout) {
      warn(fmt::format("'{}', which has no axis {}", step.tensor(row), *options_.unit_axis));
      return {};
    }
    SMD_TRY(const auto active,
            count_active(value.view(), *layout, {.above = bounds.low, .below = bounds.high}));
    const auto saturated = std::ranges::count_if(active, [&](int64_t count) {
      return is_inactive(count, layout->samples(), options_.inactivity);
    });
    const double percent =
        100 * static_cast<double>(saturated) / static_cast<double>(layout->units);
    if (!(percent > options_.layer)) return {};
    const bool is_first = hits.empty();
    Violation* hit = hits.add(step, row, "saturated_percent", percent, Op::above, options_.layer);
    if (hit == nullptr) return {};
    int64_t low = 0;
    int64_t high = 0;
    SMD_RETURN_IF_ERROR(for_each_block(value.view(), [&](int64_t, std::span<const double> numbers) {
      for (double x : numbers) {
        low += x <= bounds.low;
        high += x >= bounds.high;
      }
    }));
    hit->with("saturated_units", Json(saturated))
        .with("units", Json(layout->units))
        .with("samples", Json(layout->samples()))
        .with("low_count", Json(low))
        .with("high_count", Json(high))
        .with("low_bound", bounds.low)
        .with("high_bound", bounds.high);
    if (is_first) {
      hits.say(fmt::format("{} of the {} units behind '{}' are in the flat part of {}.", saturated,
                           layout->units, step.tensor(row),
                           &bounds == &options_.tanh ? "tanh" : "the sigmoid"));
    }
    return {};
  }

  void warn(std::string_view what) {
    if (has_warned_) return;
    has_warned_ = true;
    log_->warning(fmt::format("{} does not judge {}.", kName, what));
  }

  Selection inputs_;
  const Options options_;
  const std::shared_ptr<Log> log_;
  bool has_warned_ = false;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    {.name = "tensor_regex",
     .type = ParameterType::list,
     .default_text = ".*tanh_input|.*sigmoid_input",
     .help = "Tensors in whose names one of these patterns is found are inputs of activations."},
    {.name = "threshold_tanh_min",
     .type = ParameterType::real,
     .default_text = "-9.4999",
     .help = "An input of tanh at or below it is saturated."},
    {.name = "threshold_tanh_max",
     .type = ParameterType::real,
     .default_text = "9.4999",
     .help = "An input of tanh at or above it is saturated."},
    {.name = "threshold_sigmoid_min",
     .type = ParameterType::real,
     .default_text = "-23",
     .help = "An input of a sigmoid at or below it is saturated."},
    {.name = "threshold_sigmoid_max",
     .type = ParameterType::real,
     .default_text = "16.99999",
     .help = "An input of a sigmoid at or above it is saturated."},
    {.name = "threshold_tanh",
     .type = ParameterType::number_list,
     .default_text = "",
     .help = "The older form of threshold_tanh_min and threshold_tanh_max: both numbers."},
    {.name = "threshold_sigmoid",
     .type = ParameterType::number_list,
     .default_text = "",
     .help = "The older form of threshold_sigmoid_min and threshold_sigmoid_max: both numbers."},
    kThresholdInactivity,
    kThresholdLayer,
    kUnitAxis,
};

// `pair` is "threshold_tanh" or "threshold_sigmoid".
Result<Bounds> parse_bounds(const Parameters& parameters, const std::string& pair) {
  const std::string low = pair + "_min";
  const std::string high = pair + "_max";
  Bounds out{parameters.real(low), parameters.real(high)};
  if (parameters.has(pair)) {
    for (const std::string& single : {low, high}) {
      if (parameters.is_given(single)) {
        return Error{
            ErrorCode::invalid_argument,
            fmt::format("{} and {} of {} are both given; give one of them.", pair, single, kName)};
      }
    }
    const std::vector<double>& both = parameters.numbers(pair);
    if (both.size() != 2) {
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} of {} has {} numbers; it must have 2, the lower and the upper "
                               "bound.",
                               pair, kName, both.size())};
    }
    out = {both[0], both[1]};
  }
  if (!(out.low < out.high)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("The lower bound of {} of {} is {}; it must be below the upper one, "
                             "which is {}.",
                             pair, kName, out.low, out.high)};
  }
  return out;
}

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext& context) {
  Options options{.inactivity = parameters.real(kThresholdInactivity.name),
                  .layer = parameters.real(kThresholdLayer.name)};
  SMD_TRY(options.tanh, parse_bounds(parameters, "threshold_tanh"));
  SMD_TRY(options.sigmoid, parse_bounds(parameters, "threshold_sigmoid"));
  if (parameters.has(kUnitAxis.name)) options.unit_axis = parameters.integer(kUnitAxis.name);
  SMD_TRY(auto inputs, Selection::create({.what = "inputs of tanh and sigmoid",
                                          .collections = parameters.list("collection_names"),
                                          .patterns = parameters.list("tensor_regex"),
                                          .values = true},
                                         parameters));
  return make_rule<SaturatedActivation>(std::move(inputs), options, context.log);
}

}  // namespace

extern const RuleKind saturated_activation;
const RuleKind saturated_activation = {
    .name = kName,
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Most units of a tanh or sigmoid layer are stuck in its flat part.",
    .sees =
        "The inputs of each tanh and sigmoid layer at one step. A unit is saturated when its "
        "input lies between the bounds in less than threshold_inactivity percent of the "
        "batch's samples; fires when more than threshold_layer percent of the units are "
        "saturated. The kind of activation comes from the tensor's name.",
    .why =
        "In the flat part the gradient is practically zero, so neither this layer nor those "
        "before it learn.",
    .fix =
        "Normalise the inputs of the model and of this layer, use a narrower initialisation, "
        "lower the learning rate, or use ReLU-like activations. For convolutions give "
        "unit_axis=1 to judge channels rather than single places.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
