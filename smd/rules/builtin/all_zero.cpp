#include <fmt/format.h>

#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kName = "AllZero";

class AllZero final : public Rule {
 public:
  AllZero(Selection tensors, double threshold)
      : tensors_(std::move(tensors)), threshold_(threshold) {}

  std::vector<Selection*> selections() override { return {&tensors_}; }

  Status observe(const StepView& step, Hits& hits) override {
    return tensors_.for_each(step, [&](const TensorRow& row) -> Status {
      const double percent = threshold_ == 100 ? 100 * step.number(row, Statistic::all_zero)
                                               : step.number(row, Statistic::zero_percent);
      if (!(percent >= threshold_)) return {};
      const bool is_first = hits.empty();
      Violation* hit = hits.add(step, row, "zero_percent", percent,
                                percent == threshold_ ? Op::equal : Op::above, threshold_);
      if (hit == nullptr) return {};
      SMD_TRY(const auto size, element_count_of(step, row));
      if (size) hit->with("elements", Json(*size));
      if (is_first) {
        hits.say(percent == 100 ? fmt::format("'{}' is zero in every element.", step.tensor(row))
                                : fmt::format("{:.4g} % of the elements of '{}' are zero.", percent,
                                              step.tensor(row)));
      }
      return {};
    });
  }

 private:
  // nullopt: only reductions were saved, without the shape.
  static Result<std::optional<int64_t>> element_count_of(const StepView& step,
                                                         const TensorRow& row) {
    if (row.shape != nullptr) {
      SMD_TRY(const int64_t count, element_count(*row.shape));
      return std::optional(count);
    }
    if (!row.has_value) return std::optional<int64_t>();
    SMD_TRY(const TensorValue* value, step.value(row));
    return std::optional(value->view().size());
  }

  Selection tensors_;
  double threshold_;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "threshold",
     .type = ParameterType::real,
     .default_text = "100",
     .help = "Fires when at least this many percent of a tensor's elements are zero.",
     .range = "(0,100]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_RETURN_IF_ERROR(require_selector(kName, parameters));
  const double threshold = parameters.real("threshold");
  // Extrema tell whether all elements are zero, and not how many.
  const Statistic sign = threshold == 100 ? Statistic::all_zero : Statistic::zero_percent;
  SMD_TRY(auto tensors, Selection::create({.what = "tensors",
                                           .collections = parameters.list("collection_names"),
                                           .patterns = parameters.list("tensor_regex"),
                                           .statistics = {sign}},
                                          parameters));
  return make_rule<AllZero>(std::move(tensors), threshold);
}

}  // namespace

extern const RuleKind all_zero;
const RuleKind all_zero = {
    .name = kName,
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "A tensor is zero, wholly or mostly.",
    .sees =
        "The share of zeros in each selected tensor; fires when it reaches the threshold. "
        "Minus zero is zero; the smallest numbers and NaN are not.",
    .why =
        "Zero weights and zero outputs pass nothing on, neither forward nor backward, so that "
        "part of the model does not take part in training.",
    .fix =
        "For weights, look at the initialisation and at the strength of weight decay. For "
        "outputs, look for dead ReLUs, a mask or a dropout that removes everything, and inputs "
        "that are empty. For gradients, look for a detached graph. Leave out tensors that start "
        "at zero on purpose, such as biases, with exclude_regex.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
