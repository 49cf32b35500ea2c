#include <fmt/format.h>

#include <algorithm>

#include "smd/collection/builtin.h"
#include "smd/collection/pattern.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

class NegativeLoss final : public Rule {
 public:
  NegativeLoss(Selection losses, std::vector<Pattern> non_negative)
      : losses_(std::move(losses)), non_negative_(std::move(non_negative)) {}

  std::vector<Selection*> selections() override { return {&losses_}; }

  Status observe(const StepView& step, Hits& hits) override {
    worst_ = Severity::info;
    losses_.for_each(step, [&](const TensorRow& row) {
      const double loss = step.number(row, Statistic::mean);
      bool& is_told = told_.of(row, step.info().mode).is_told;
      if (!(loss < 0) || is_told) return;
      is_told = true;
      const std::string& name = step.tensor(row);
      const bool is_impossible = std::ranges::any_of(
          non_negative_, [&](const Pattern& pattern) { return pattern.found_in(name); });
      worst_ = std::max(worst_, is_impossible ? Severity::warning : Severity::info);
      hits.set_severity(worst_);
      hits.add(step, row, "loss", loss, Op::below, 0);
      hits.say(fmt::format("'{}' is {:.6g}{}.", name, loss,
                           is_impossible ? ", which such a loss can never be" : ", below zero"));
    });
    return {};
  }

 private:
  struct Told {
    bool is_told = false;
  };

  Selection losses_;
  std::vector<Pattern> non_negative_;
  RowTable<Told> told_;
  Severity worst_ = Severity::info;  // of this step
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "non_negative_regex",
     .type = ParameterType::list,
     .default_text = "(?i)cross_?entropy|bce|mse|l1_?loss|smooth_?l1|huber|hinge|nll_?loss",
     .help = "Losses with such names are never negative; others are reported as information."},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kLosses}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  std::vector<Pattern> non_negative;
  for (const std::string& text : parameters.list("non_negative_regex")) {
    SMD_TRY(auto pattern, Pattern::compile(text));
    non_negative.push_back(std::move(pattern));
  }
  SMD_TRY(auto losses, select_series(parameters, "losses", collection_keys::kLosses));
  return make_rule<NegativeLoss>(std::move(losses), std::move(non_negative));
}

}  // namespace

extern const RuleKind negative_loss;
const RuleKind negative_loss = {
    .name = "NegativeLoss",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The loss is below zero.",
    .sees =
        "Each loss; fires at the first negative value of a loss whose name says that it cannot "
        "be negative, and as information for others.",
    .why =
        "Cross-entropies, squared and absolute errors are never negative. A value below zero "
        "means that the loss gets something else than it expects: probabilities instead of "
        "their logarithms, labels out of range, or a wrong sign.",
    .fix =
        "Give losses of log-likelihood the logarithms of probabilities, check the range of the "
        "labels, and the sign of terms that are added to the loss.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
