#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "smd/collection/builtin.h"
#include "smd/rules/elements.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// Tensors that begin at zero grow by large factors at first; so many checks are passed over then.
constexpr int64_t kChecksFromZero = 50;
constexpr double kNearlyZero = 1e-8;
// Fewer checks say nothing about a whole run.
constexpr int64_t kLeastChecks = 20;
// Weights of 32 bits lose updates that are smaller than this.
constexpr double kLost = 1e-7;

struct Options {
  double low = -4;   // log10
  double high = -1;  // log10
  int64_t patience = 5;
};

// A weight of one worker in one mode.
struct Track {
  bool is_known = false;
  Step step = 0;
  double abs_mean = 0;
  bool begins_at_zero = false;
  double largest_abs_mean = 0;
  // The newest that was saved, which may be older than the newest numbers.
  std::optional<TensorValue> value;
  Step value_step = 0;
  double value_abs_mean = 0;
  int64_t checks = 0;
  int64_t exact_checks = 0;
  int64_t high_values = 0;  // checks in a row
  int64_t high_bounds = 0;  // checks in a row
  bool was_above_low = false;
  double largest = 0;  // update so far
};

class UpdateSize final : public Rule {
 public:
  UpdateSize(Selection weights, const Options& options)
      : weights_(std::move(weights)), options_(options) {}

  std::vector<Selection*> selections() override { return {&weights_}; }

  Status observe(const StepView& step, Hits& hits) override {
    return weights_.for_each(
        step, [&](const TensorRow& row) -> Status { return judge(step, row, hits); });
  }

  // Too small is told at the end alone: warm-up and decay pass through tiny updates.
  Status finish(const RunView& run, Hits& hits) override {
    size_t judged = 0;
    size_t small = 0;
    double largest = 0;
    const auto is_judged = [](const Track& track) {
      return track.exact_checks >= kLeastChecks && track.largest > 0;
    };
    tracks_.for_each([&](uint32_t, uint32_t, Track& track) {
      if (!is_judged(track)) return;
      ++judged;
      small += track.was_above_low ? 0 : 1;
      if (!track.was_above_low) largest = std::max(largest, track.largest);
    });
    if (judged == 0 || 2 * small < judged) return {};
    tracks_.for_each([&](uint32_t tensor, uint32_t worker, Track& track) {
      if (!is_judged(track) || track.was_above_low) return;
      hits.add(run, tensor, worker, "log10_update", std::log10(track.largest), Op::below,
               options_.low);
    });
    hits.set_severity(largest < kLost ? Severity::warning : Severity::info);
    hits.say(
        fmt::format("{} of {} weights moved by at most {:.1g} of their magnitude per saved "
                    "step, in the whole run.",
                    small, judged, largest));
    return {};
  }

 private:
  Status judge(const StepView& step, const TensorRow& row, Hits& hits) {
    const StepInfo& at = step.info();
    Track& track = tracks_.of(row, at.mode);
    const Step now = at.mode == Mode::global ? at.step : at.mode_step;
    const double abs_mean = step.number(row, Statistic::abs_mean);
    const TensorValue* value = nullptr;
    if (row.has_value) {
      SMD_TRY(value, step.value(row));
    }
    if (!track.is_known) track.begins_at_zero = abs_mean < kNearlyZero;
    track.largest_abs_mean = std::max(track.largest_abs_mean, track.abs_mean);
    const Step steps = now - (track.value ? track.value_step : now);
    const bool is_exact = steps > 0 && value != nullptr && track.value->shape == value->shape;
    if (is_exact) {
      SMD_TRY(const double moved, mean_distance(*track.value, *value));
      check(step, row, track, {.moved = moved, .before = track.value_abs_mean, .steps = steps},
            hits);
    }
    // The change of a mean is a lower bound of the mean change.
    if (track.is_known && now > track.step && !(is_exact && steps == 1)) {
      check(step, row, track,
            {.moved = std::fabs(abs_mean - track.abs_mean),
             .before = track.abs_mean,
             .steps = now - track.step,
             .is_bound = true},
            hits);
    }
    track.is_known = true;
    track.step = now;
    track.abs_mean = abs_mean;
    if (value != nullptr) {
      track.value = *value;
      track.value_step = now;
      track.value_abs_mean = abs_mean;
    }
    return {};
  }

  struct Change {
    double moved = 0;
    double before = 0;  // magnitude
    Step steps = 1;
    bool is_bound = false;
  };

  void check(const StepView& step, const TensorRow& row, Track& track, const Change& change,
             Hits& hits) {
    // Gains that begin at zero may come back to it, where every step is large.
    const double before = track.begins_at_zero ? track.largest_abs_mean : change.before;
    const double moved = change.moved / before;
    if (!(before > 0) || !std::isfinite(moved)) return;
    ++track.checks;
    // Over several steps this is a lower bound for one of them.
    const double per_step = moved / static_cast<double>(change.steps);
    track.was_above_low = track.was_above_low || std::log10(moved) >= options_.low;
    if (!change.is_bound) {
      ++track.exact_checks;
      track.largest = std::max(track.largest, moved);
    }
    const bool is_young = track.begins_at_zero && track.checks <= kChecksFromZero;
    // Single numbers are gains and temperatures, which grow fast and pass through zero.
    const bool is_single = row.has(Statistic::value) ||
                           step.number(row, Statistic::min) == step.number(row, Statistic::max);
    const bool is_high = !is_young && !is_single && std::log10(per_step) > options_.high;
    // A low bound says nothing about values.
    int64_t& in_a_row = change.is_bound ? track.high_bounds : track.high_values;
    in_a_row = is_high ? in_a_row + 1 : 0;
    if (in_a_row != options_.patience) return;
    Violation* hit =
        hits.add(step, row, "log10_update", std::log10(per_step), Op::above, options_.high);
    if (hit == nullptr) return;
    hit->with("abs_mean", change.before)
        .with("steps", Json(change.steps))
        .with("checks_in_a_row", Json(in_a_row))
        .with("from", Json(change.is_bound ? "abs_mean, a lower bound" : "values"));
    hits.set_severity(Severity::warning);
    hits.say(fmt::format("'{}' moves by {:.0f} % of its magnitude per step{}, {} checks in a row.",
                         step.tensor(row), 100 * per_step,
                         !change.is_bound && change.steps == 1 ? "" : " or more", in_a_row));
  }

  static Result<double> mean_distance(const TensorValue& before, const TensorValue& now) {
    SMD_TRY(const auto old, to_doubles(before.view()));
    double sum = 0;
    SMD_RETURN_IF_ERROR(
        for_each_block(now.view(), [&](int64_t first, std::span<const double> numbers) {
          const double* partner = old.data() + first;
          for (size_t i = 0; i < numbers.size(); ++i) sum += std::fabs(numbers[i] - partner[i]);
        }));
    return sum / static_cast<double>(std::max<size_t>(old.size(), 1));
  }

  Selection weights_;
  Options options_;
  RowTable<Track> tracks_;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "low",
     .type = ParameterType::real,
     .default_text = "-4",
     .help = "Decimal logarithm of the smallest update, relative to the weight, that is usual."},
    {.name = "high",
     .type = ParameterType::real,
     .default_text = "-1",
     .help = "Decimal logarithm of the largest update, relative to the weight, that is usual."},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "So many checks in a row above the band are an alarm.",
     .range = "[1,]"},
};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "1"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kWeights, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  const Options options{.low = parameters.real("low"),
                        .high = parameters.real("high"),
                        .patience = parameters.integer("patience")};
  if (!(options.low < options.high)) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("low of UpdateSize is {}, which is not below high, {}.", options.low,
                             options.high)};
  }
  SelectionOptions selected{.what = "weights",
                            .collections = parameters.list("collection_names"),
                            .patterns = parameters.list("tensor_regex"),
                            .statistics = {Statistic::abs_mean},
                            .context = {Statistic::value, Statistic::min, Statistic::max}};
  if (selected.collections.empty() && selected.patterns.empty()) {
    selected.collections.emplace_back(collection_keys::kWeights);
    selected.exclude = {"^gradient", "^feature_importance"};
  }
  SMD_TRY(auto weights, Selection::create(std::move(selected), parameters));
  return make_rule<UpdateSize>(std::move(weights), options);
}

}  // namespace

extern const RuleKind update_size;
const RuleKind update_size = {
    .name = "UpdateSize",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Weights move too far with every step, or hardly at all.",
    .sees =
        "The mean change of each weight from one saved step to the next, per step and relative to "
        "its mean magnitude; fires when it is above the band for patience checks, and at the end "
        "when most weights never came up to it. Weights that begin at zero get time to grow, and "
        "single numbers are never too fast. Between saved values the change of abs_mean serves as "
        "a lower bound.",
    .why =
        "Healthy updates are around a thousandth of the weight. Ten percent per step forget "
        "what was learned before; a ten-thousandth and less means that the run goes nowhere.",
    .fix =
        "Too large: lower the learning rate, clip gradients, and check that gradients are reset "
        "in every step. Too small: raise the learning rate, and look for gradients that vanish "
        "or a weight decay that eats the updates; in half precision keep a copy of the weights "
        "in float32.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
