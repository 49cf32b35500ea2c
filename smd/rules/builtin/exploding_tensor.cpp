#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/rules/elements.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

class ExplodingTensor final : public Rule {
 public:
  ExplodingTensor(Selection tensors, bool only_nan)
      : tensors_(std::move(tensors)), only_nan_(only_nan) {}

  std::vector<Selection*> selections() override { return {&tensors_}; }

  Status observe(const StepView& step, Hits& hits) override {
    found_.clear();
    const Statistic sign = only_nan_ ? Statistic::has_nan : Statistic::nonfinite;
    tensors_.for_each(step, [&](const TensorRow& row) {
      if (step.number(row, sign) == 1) found_.push_back(&row);
    });
    // The first one to be computed is where it began.
    std::ranges::stable_sort(found_, {}, &TensorRow::order);
    for (const TensorRow* row : found_) SMD_RETURN_IF_ERROR(report(step, *row, hits));
    return {};
  }

 private:
  Status report(const StepView& step, const TensorRow& row, Hits& hits) const {
    SpecialElements seen;
    if (row.has_value) {
      SMD_TRY(const TensorValue* value, step.value(row));
      SMD_TRY(seen, find_special(value->view()));
    }
    const double count = static_cast<double>(
        seen.nan_count + (only_nan_ ? 0 : seen.positive_inf_count + seen.negative_inf_count));
    Violation* hit = hits.add(step, row, only_nan_ ? "nan_count" : "nonfinite_count",
                              row.has_value ? count : 1, Op::above, 0);
    if (hit == nullptr) return {};
    hit->with("order", Json(row.order));
    if (row.has_value) {
      hit->with("nan_count", Json(seen.nan_count))
          .with("positive_inf_count", Json(seen.positive_inf_count))
          .with("negative_inf_count", Json(seen.negative_inf_count))
          .with("first_index", Json(seen.first_index))
          .with("largest_finite", seen.largest_finite);
    }
    if (found_.front() == &row) {
      hits.say(fmt::format(
          "'{}' holds {}{}.", step.tensor(row),
          step.number(row, Statistic::has_nan) == 1 ? "NaN" : "infinity",
          found_.size() > 1
              ? fmt::format(", the first of {} tensors in the order of the step", found_.size())
              : ""));
    }
    return {};
  }

  Selection tensors_;
  bool only_nan_;
  std::vector<const TensorRow*> found_;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "only_nan",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "Look for NaN alone and accept infinities."},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  const bool only_nan = parameters.boolean("only_nan");
  const Statistic sign = only_nan ? Statistic::has_nan : Statistic::nonfinite;
  SMD_TRY(auto tensors, Selection::create({.what = "tensors",
                                           .collections = parameters.list("collection_names"),
                                           .patterns = parameters.list("tensor_regex"),
                                           .statistics = {sign},
                                           .context = {Statistic::has_nan}},
                                          parameters));
  return make_rule<ExplodingTensor>(std::move(tensors), only_nan);
}

}  // namespace

extern const RuleKind exploding_tensor;
const RuleKind exploding_tensor = {
    .name = "ExplodingTensor",
    .group = RuleGroup::deep_learning,
    .severity = Severity::error,
    .summary = "A tensor holds NaN or infinity.",
    .sees =
        "Every selected floating tensor; fires when an element is NaN or, unless only_nan, "
        "infinite.",
    .why =
        "Whatever is computed from such a tensor becomes NaN, too, and so do the weights at the "
        "next update; training does not recover.",
    .fix =
        "Begin with the first tensor of the list: lower the learning rate or clip gradients if "
        "its magnitude grew before, and look for log or division of zero if it did not. Leave "
        "out masks that hold -inf on purpose with exclude_regex.",
    .parameters = kParameters,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
