#include <fmt/format.h>

#include "smd/collection/builtin.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

class VanishingGradient final : public Rule {
 public:
  VanishingGradient(Selection gradients, double threshold)
      : gradients_(std::move(gradients)), threshold_(threshold) {}

  std::vector<Selection*> selections() override { return {&gradients_}; }

  Status observe(const StepView& step, Hits& hits) override {
    gradients_.for_each(step, [&](const TensorRow& row) {
      const double mean = step.number(row, Statistic::abs_mean);
      if (!(mean < threshold_)) return;
      Violation* hit = hits.add(step, row, "abs_mean", mean, Op::below, threshold_);
      if (hit == nullptr) return;
      hit->with("abs_max", step.number(row, Statistic::abs_max)).with("order", Json(row.order));
      const auto value = row.has_value ? step.value(row) : Result<const TensorValue*>(nullptr);
      if (value.ok() && *value != nullptr) {
        const auto size = static_cast<double>((*value)->view().size());
        hit->with("zero_share", step.number(row, Statistic::zero_count) / size);
      }
    });
    return {};
  }

 private:
  Selection gradients_;
  double threshold_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "threshold",
     .type = ParameterType::real,
     .default_text = "0.0000001",
     .help = "Fires when the mean magnitude of a gradient is below it."},
};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "500"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kGradients, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .statistics = {Statistic::abs_mean},
                             .context = {Statistic::abs_max, Statistic::zero_count}},
                            parameters));
  return make_rule<VanishingGradient>(std::move(gradients), parameters.real("threshold"));
}

}  // namespace

extern const RuleKind vanishing_gradient;
const RuleKind vanishing_gradient = {
    .name = "VanishingGradient",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Gradients are so small that layers have stopped learning.",
    .sees = "The mean magnitude of each gradient; fires when one is below the threshold.",
    .why =
        "Weights move by the learning rate times the gradient, so these layers stay as they are "
        "while training goes on.",
    .fix =
        "Look at the layers between these and the loss: use ReLU-like activations, residual "
        "connections or normalisation, a wider initialisation, or loss scaling in half "
        "precision. Leave out tensors with few rows in use, such as embeddings, with "
        "exclude_regex.",
    .parameters = kParameters,
    .collections = kCollections,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
