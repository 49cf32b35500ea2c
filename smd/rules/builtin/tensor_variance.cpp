#include <fmt/format.h>

#include <cmath>

#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kName = "TensorVariance";

class TensorVariance final : public Rule {
 public:
  TensorVariance(Selection tensors, std::optional<double> least, std::optional<double> most)
      : tensors_(std::move(tensors)), least_(least), most_(most) {}

  std::vector<Selection*> selections() override { return {&tensors_}; }

  Status observe(const StepView& step, Hits& hits) override {
    return tensors_.for_each(step, [&](const TensorRow& row) -> Status {
      const double variance = step.number(row, Statistic::variance);
      if (!std::isfinite(variance)) return {};
      const bool is_large = most_ && variance > *most_;
      if (!is_large && !(least_ && variance < *least_)) return {};
      if (variance == 0) {
        SMD_TRY(const bool is_single, has_one_element(step, row));
        if (is_single) return {};
      }
      hits.add(step, row, "variance", variance, is_large ? Op::above : Op::below,
               is_large ? *most_ : *least_);
      return {};
    });
  }

 private:
  // A single number, which has no variance although statistics call it zero.
  static Result<bool> has_one_element(const StepView& step, const TensorRow& row) {
    if (row.has(Statistic::value)) return true;
    if (row.shape != nullptr) {
      SMD_TRY(const int64_t count, element_count(*row.shape));
      return count < 2;
    }
    if (!row.has_value) return false;
    SMD_TRY(const TensorValue* value, step.value(row));
    return value->view().size() < 2;
  }

  Selection tensors_;
  std::optional<double> least_;
  std::optional<double> most_;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "max_threshold",
     .type = ParameterType::real,
     .default_text = "",
     .help = "Fires when the variance of a tensor is above it.",
     .range = "[0,]"},
    {.name = "min_threshold",
     .type = ParameterType::real,
     .default_text = "",
     .help = "Fires when the variance of a tensor is below it.",
     .range = "[0,]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext& context) {
  SMD_RETURN_IF_ERROR(require_selector(kName, parameters));
  const auto bound = [&](std::string_view name) {
    return parameters.has(name) ? std::optional(parameters.real(name)) : std::nullopt;
  };
  const auto most = bound("max_threshold");
  const auto least = bound("min_threshold");
  if (!most && !least) {
    context.log->warning(fmt::format(
        "{} has neither max_threshold nor min_threshold, so it will never fire.", kName));
  }
  if (most && least && *least > *most) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("min_threshold of {} is {}, above max_threshold, which is {}.", kName,
                             *least, *most)};
  }
  SMD_TRY(auto tensors, Selection::create({.what = "tensors",
                                           .collections = parameters.list("collection_names"),
                                           .patterns = parameters.list("tensor_regex"),
                                           .statistics = {Statistic::variance},
                                           .context = {Statistic::value}},
                                          parameters));
  return make_rule<TensorVariance>(std::move(tensors), least, most);
}

}  // namespace

extern const RuleKind tensor_variance;
const RuleKind tensor_variance = {
    .name = kName,
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "The variance of a tensor has left the band you gave.",
    .sees =
        "The variance over all elements of each selected tensor; fires when it is above "
        "max_threshold or below min_threshold. Tensors with fewer than two elements, NaN or "
        "infinity are not judged.",
    .why =
        "A variance that grows from layer to layer or from step to step ends in saturated "
        "activations and overflow; one that shrinks leaves nothing to learn from.",
    .fix =
        "If it is too large, lower the learning rate, normalise inputs and layers, or use an "
        "initialisation made for the activation. If it is too small, use a wider initialisation "
        "or less weight decay, and look for inputs that were normalised twice.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
