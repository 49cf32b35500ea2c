#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/collection/builtin.h"
#include "smd/rules/elements.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// How far rounding may carry a sum of probabilities from one.
constexpr double kRounding = 1e-3;
constexpr std::string_view kCrossEntropy = "(?i)cross_?entropy[a-z]*_input_0$";
constexpr std::string_view kLogLikelihood = "(?i)nll[a-z]*_input_0$";
constexpr std::string_view kSquared = "(?i)(mse|squared?)[a-z_]*_input_0$";

struct Seen {
  int64_t checks = 0;  // bad ones in a row
};

class OutputRange final : public Rule {
 public:
  OutputRange(Selection logits, Selection logs, Selection squared, Selection labels,
              int64_t patience)
      : logits_(std::move(logits)),
        logs_(std::move(logs)),
        squared_(std::move(squared)),
        labels_(std::move(labels)),
        patience_(patience) {}

  std::vector<Selection*> selections() override { return {&logits_, &logs_, &squared_, &labels_}; }

  Status observe(const StepView& step, Hits& hits) override {
    SMD_RETURN_IF_ERROR(logits_.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* value, step.value(row));
      SMD_TRY(const bool is_bad, are_probabilities(*value));
      count(step, row, is_bad, "row_sum",
            "holds probabilities already: the softmax is applied twice", hits);
      return {};
    }));
    SMD_RETURN_IF_ERROR(logs_.for_each(step, [&](const TensorRow& row) -> Status {
      count(step, row, step.number(row, Statistic::max) > kRounding, "max",
            "is above zero and no logarithm of a probability: the log-softmax is missing", hits);
      return {};
    }));
    SMD_TRY(const bool has_classes, sees_classes(step));
    return squared_.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* value, step.value(row));
      // Without labels at this step nothing can be said.
      if (!has_classes) return {};
      const bool is_many = value->shape.size() == 2 && value->shape[0] > 1 && value->shape[1] > 1;
      count(step, row, is_many, "outputs",
            "has one output for each class, and the loss is the squared distance to the number "
            "of the class",
            hits);
      return {};
    });
  }

 private:
  void count(const StepView& step, const TensorRow& row, bool is_bad, std::string_view metric,
             std::string_view what, Hits& hits) {
    Seen& seen = seen_.of(row, step.info().mode);
    seen.checks = is_bad ? seen.checks + 1 : 0;
    if (seen.checks != patience_) return;
    hits.add(step, row, metric, static_cast<double>(seen.checks), Op::above,
             static_cast<double>(patience_ - 1));
    hits.say(fmt::format("'{}' {}.", step.tensor(row), what));
  }

  // Every row of at least two numbers is not negative and sums to one.
  static Result<bool> are_probabilities(const TensorValue& value) {
    if (value.shape.size() < 2 || value.shape[1] < 2 || value.elements.empty()) return false;
    SMD_TRY(const auto numbers, to_doubles(value.view()));
    // Classes are the second axis; whatever follows are places.
    const auto classes = static_cast<size_t>(value.shape[1]);
    size_t places = 1;
    for (size_t axis = 2; axis < value.shape.size(); ++axis) {
      places *= static_cast<size_t>(value.shape[axis]);
    }
    for (size_t start = 0; start < numbers.size(); start += classes * places) {
      for (size_t place = 0; place < places; ++place) {
        double sum = 0;
        for (size_t c = 0; c < classes; ++c) {
          const double one = numbers[start + c * places + place];
          if (!(one >= 0)) return false;
          sum += one;
        }
        if (!(std::fabs(sum - 1) <= kRounding)) return false;
      }
    }
    return true;
  }

  // Labels of the step that are numbers of classes, one for each sample.
  Result<bool> sees_classes(const StepView& step) {
    bool found = false;
    SMD_RETURN_IF_ERROR(labels_.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* value, step.value(row));
      const DTypeKind kind = info_of(value->dtype).kind;
      found = found || (value->shape.size() == 1 && value->shape[0] > 1 &&
                        (kind == DTypeKind::signed_integer || kind == DTypeKind::unsigned_integer));
      return {};
    }));
    return found;
  }

  Selection logits_;
  Selection logs_;
  Selection squared_;
  Selection labels_;
  int64_t patience_;
  RowTable<Seen> seen_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "2",
     .help = "So many checks in a row are an alarm.",
     .range = "[1,]"},
    {.name = "labels_regex",
     .type = ParameterType::list,
     .default_text = "(^|[/_.])(labels|targets?)$",
     .help = "Labels, to tell classes from quantities."},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  const auto select = [&](std::string what, std::vector<std::string> patterns, bool values) {
    return Selection::create(
        {.what = std::move(what),
         .patterns = std::move(patterns),
         .statistics = values ? StatisticSet() : StatisticSet({Statistic::max}),
         .values = values,
         .is_required = false},
        parameters);
  };
  SMD_TRY(auto logits, select("inputs of a cross-entropy", {std::string(kCrossEntropy)}, true));
  SMD_TRY(auto logs, select("inputs of a log-likelihood", {std::string(kLogLikelihood)}, false));
  SMD_TRY(auto squared, select("inputs of a squared error", {std::string(kSquared)}, true));
  SMD_TRY(auto labels, select("labels", parameters.list("labels_regex"), true));
  return make_rule<OutputRange>(std::move(logits), std::move(logs), std::move(squared),
                                std::move(labels), parameters.integer("patience"));
}

}  // namespace

extern const RuleKind output_range;
const RuleKind output_range = {
    .name = "OutputRange",
    .group = RuleGroup::deep_learning,
    .severity = Severity::error,
    .summary = "The loss function gets outputs of a kind that it does not expect.",
    .sees =
        "What goes into the loss function: a cross-entropy whose inputs are probabilities "
        "already, a negative log-likelihood whose inputs are above zero, or a squared error "
        "between several outputs and the numbers of classes.",
    .why =
        "The run trains, and on something else than was meant: a softmax of a softmax is nearly "
        "flat and learns slowly, a likelihood without normalisation has no minimum, and the "
        "distance between numbers of classes means nothing.",
    .fix =
        "Give logits to cross-entropies, log-probabilities to log-likelihoods, and use a "
        "cross-entropy where labels are classes. Remove the softmax at the end of the model, or "
        "use the loss without one.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
