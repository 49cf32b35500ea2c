#include <fmt/format.h>

#include <cmath>

#include "smd/collection/builtin.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  double high = 20;
  double low = 0.02;
  int64_t patience = 3;
};

// An input of one worker.
struct Track {
  int64_t large = 0;  // checks in a row
  int64_t small = 0;
};

bool is_whole(double number) { return std::isfinite(number) && number == std::floor(number); }

class InputRange final : public Rule {
 public:
  InputRange(Selection inputs, const Options& options)
      : inputs_(std::move(inputs)), options_(options) {}

  std::vector<Selection*> selections() override { return {&inputs_}; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    return inputs_.for_each(step,
                            [&](const TensorRow& row) -> Status { return judge(step, row, hits); });
  }

 private:
  Status judge(const StepView& step, const TensorRow& row, Hits& hits) {
    SMD_TRY(const bool is_discrete, holds_numbers_of_things(step, row));
    const double mean = step.number(row, Statistic::mean);
    const double spread = step.number(row, Statistic::std);
    if (is_discrete || !std::isfinite(mean) || !std::isfinite(spread)) return {};
    const double magnitude = std::hypot(mean, spread);
    Track& track = tracks_.of(row);
    track.large = magnitude > options_.high ? track.large + 1 : 0;
    // Constant inputs are padding or switches, and tell nothing of a scale.
    track.small = spread < options_.low && spread > 0 ? track.small + 1 : 0;
    if (track.large != options_.patience && track.small != options_.patience) return {};
    const bool is_large = track.large > 0;
    Violation* hit =
        hits.add(step, row, is_large ? "magnitude" : "std", is_large ? magnitude : spread,
                 is_large ? Op::above : Op::below, is_large ? options_.high : options_.low);
    if (hit == nullptr) return {};
    hit->with("mean", mean).with("std", spread);
    hits.say(fmt::format("'{}' has a mean of {:.3g} and a standard deviation of {:.3g}: {}.",
                         step.tensor(row), mean, spread,
                         is_large ? "inputs were not normalised"
                                  : "inputs have next to no spread, as if normalised twice"));
    return {};
  }

  // Tokens, classes and counts have no scale.
  static Result<bool> holds_numbers_of_things(const StepView& step, const TensorRow& row) {
    if (row.has_value) {
      SMD_TRY(const TensorValue* value, step.value(row));
      return info_of(value->dtype).kind != DTypeKind::floating;
    }
    return is_whole(step.number(row, Statistic::min)) &&
           is_whole(step.number(row, Statistic::max)) && is_whole(step.number(row, Statistic::sum));
  }

  Selection inputs_;
  Options options_;
  RowTable<Track> tracks_;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "high",
     .type = ParameterType::real,
     .default_text = "20",
     .help = "Root mean square of the inputs above which they count as not normalised.",
     .range = "(0,]"},
    {.name = "low",
     .type = ParameterType::real,
     .default_text = "0.02",
     .help = "Standard deviation of the inputs below which they count as squeezed.",
     .range = "[0,]"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "3",
     .help = "So many batches in a row are an alarm.",
     .range = "[1,]"},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kInputs}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SelectionOptions selected{
      .what = "inputs of the model",
      .collections = parameters.list("collection_names"),
      .patterns = parameters.list("tensor_regex"),
      .statistics = {Statistic::mean, Statistic::std},
      .context = {Statistic::min, Statistic::max, Statistic::sum},
  };
  if (selected.collections.empty() && selected.patterns.empty()) {
    selected.collections.emplace_back(collection_keys::kInputs);
    // What goes into the outermost module.
    selected.patterns.emplace_back("^[^./]*_input_[0-9]+$");
    selected.exclude = {"(?i)loss|entropy|criterion|embed"};
  }
  SMD_TRY(auto inputs, Selection::create(std::move(selected), parameters));
  return make_rule<InputRange>(std::move(inputs),
                               Options{.high = parameters.real("high"),
                                       .low = parameters.real("low"),
                                       .patience = parameters.integer("patience")});
}

}  // namespace

extern const RuleKind input_range;
const RuleKind input_range = {
    .name = "InputRange",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "What goes into the model is far from the scale that initialisations assume.",
    .sees =
        "Mean and standard deviation of the floating inputs of the model while it is trained; "
        "fires when their root mean square is above high, or their spread below low, in several "
        "batches in a row. Whole numbers such as tokens are left out.",
    .why =
        "Initial weights and learning rates are made for inputs of about unit size. Raw pixels "
        "saturate or explode the first layers; inputs that were divided twice leave nothing to "
        "learn from but the biases.",
    .fix =
        "Subtract the mean of the training set and divide by its standard deviation, once. Look "
        "for a transformation that is missing or stands in both the dataset and the model.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
