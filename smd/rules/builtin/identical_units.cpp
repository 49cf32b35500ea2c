#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/collection/builtin.h"
#include "smd/rules/elements.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// Relative to the largest weight.
constexpr double kRounding = 1e-5;

struct Track {
  int64_t alike = 0;  // checks in a row
  Step since = 0;
};

class IdenticalUnits final : public Rule {
 public:
  IdenticalUnits(Selection weights, int64_t patience, int64_t steps)
      : weights_(std::move(weights)), patience_(patience), steps_(steps) {}

  std::vector<Selection*> selections() override { return {&weights_}; }

  Status observe(const StepView& step, Hits& hits) override {
    const StepInfo& at = step.info();
    if (at.mode == Mode::eval || at.mode == Mode::predict) return {};
    const Step now = at.mode == Mode::global ? at.step : at.mode_step;
    return weights_.for_each(step, [&](const TensorRow& row) -> Status {
      SMD_TRY(const TensorValue* value, step.value(row));
      SMD_TRY(const bool is_alike, are_rows_alike(*value));
      Track& track = tracks_.of(row);
      if (track.alike == 0) track.since = now;
      track.alike = is_alike ? track.alike + 1 : 0;
      // Tensors that begin alike and part with the first updates are healthy.
      const bool is_bad = track.alike >= patience_ && now - track.since >= steps_;
      if (!is_bad || is_told_.of(row)) return {};
      is_told_.of(row) = true;
      Violation* hit =
          hits.add(step, row, "units_alike", static_cast<double>(value->shape[0]), Op::above, 1);
      if (hit != nullptr) hit->with("since_step", Json(track.since));
      hits.say(
          fmt::format("All {} units of '{}' have the same weights, after {} steps of training.",
                      value->shape[0], step.tensor(row), now - track.since));
      return {};
    });
  }

 private:
  static Result<bool> are_rows_alike(const TensorValue& value) {
    if (value.shape.size() < 2 || value.shape[0] < 2) return false;
    SMD_TRY(const auto numbers, to_doubles(value.view()));
    const size_t width = numbers.size() / static_cast<size_t>(value.shape[0]);
    if (width < 2) return false;
    double largest = 0;
    double difference = 0;
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (!std::isfinite(numbers[i])) return false;
      largest = std::max(largest, std::fabs(numbers[i]));
      difference = std::max(difference, std::fabs(numbers[i] - numbers[i % width]));
    }
    return difference <= kRounding * largest;
  }

  Selection weights_;
  int64_t patience_;
  int64_t steps_;
  RowTable<Track> tracks_;
  RowTable<bool> is_told_;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "3",
     .help = "So many saved values in a row must be alike.",
     .range = "[1,]"},
    {.name = "steps",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "They must span at least so many steps.",
     .range = "[0,]"},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kWeights}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SelectionOptions selected{.what = "weights",
                            .collections = parameters.list("collection_names"),
                            .patterns = parameters.list("tensor_regex"),
                            .values = true};
  if (selected.collections.empty() && selected.patterns.empty()) {
    selected.collections.emplace_back(collection_keys::kWeights);
    selected.exclude = {"^gradient", "^feature_importance", "(?i)embed"};
  }
  SMD_TRY(auto weights, Selection::create(std::move(selected), parameters));
  return make_rule<IdenticalUnits>(std::move(weights), parameters.integer("patience"),
                                   parameters.integer("steps"));
}

}  // namespace

extern const RuleKind identical_units;
const RuleKind identical_units = {
    .name = "IdenticalUnits",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "All units of a layer have the same weights.",
    .sees =
        "Saved weights of two and more dimensions; fires when all rows of one, which are the "
        "units of the layer, are the same in several saved steps in a row.",
    .why =
        "Units that begin alike get the same gradient and stay alike for ever, so the whole layer "
        "is worth a single unit. Weights that are all zero pass nothing on at all.",
    .fix =
        "Initialise weights at random, by their fan-in; zeros and constants are for biases and "
        "for the gains of residual branches. Load checkpoints after the initialisation, not "
        "before.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
