#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <unordered_set>

#include "smd/collection/builtin.h"
#include "smd/rules/elements.h"
#include "smd/rules/held_values.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr std::string_view kName = "WeightUpdateRatio";

struct Options {
  std::optional<int64_t> num_steps;
  double large = 10;
  double small = 1e-8;
  double epsilon = 1e-9;
  bool skip_frozen = false;
  bool skip_zero_init = false;
};

struct Norms {
  double update = 0;
  double before = 0;
};

// Sums in lanes, which become vector instructions, and the totals of blocks with their rounding
// errors.
class SquareSum final {
 public:
  template <typename NumberAt>
  void add(size_t count, NumberAt&& number_at) {
    std::array<double, kLanes> lanes{};
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const double x = number_at(i + lane);
        lanes[lane] += x * x;
      }
    }
    for (; i < count; ++i) lanes[0] += number_at(i) * number_at(i);
    for (size_t width = kLanes / 2; width > 0; width /= 2) {
      for (size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    }
    const double total = sum_ + lanes[0];
    error_ += sum_ >= lanes[0] ? (sum_ - total) + lanes[0] : (lanes[0] - total) + sum_;
    sum_ = total;
  }
  double norm() const { return std::sqrt(sum_ + error_); }

 private:
  static constexpr size_t kLanes = 8;
  double sum_ = 0;
  double error_ = 0;
};

Result<Norms> norms_of(const TensorView& now, const TensorView& before) {
  SquareSum update;
  SquareSum norm;
  SMD_RETURN_IF_ERROR(for_each_pair(
      now, before, [&](int64_t, std::span<const double> a, std::span<const double> b) {
        update.add(a.size(), [&](size_t i) { return a[i] - b[i]; });
        norm.add(b.size(), [&](size_t i) { return b[i]; });
        return true;
      }));
  return Norms{update.norm(), norm.norm()};
}

// The name of the weight that a gradient belongs to.
std::string_view weight_of(std::string_view gradient) {
  for (std::string_view prefix : {"gradient/", "gradients/"}) {
    if (gradient.starts_with(prefix)) gradient.remove_prefix(prefix.size());
  }
  return gradient;
}

class WeightUpdateRatio final : public Rule {
 public:
  WeightUpdateRatio(Selection weights, std::optional<Selection> gradients, const Options& options,
                    HeldValues values)
      : weights_(std::move(weights)),
        gradients_(std::move(gradients)),
        options_(options),
        values_(std::move(values)) {}

  std::vector<Selection*> selections() override {
    if (!gradients_) return {&weights_};
    return {&weights_, &*gradients_};
  }

  Status observe(const StepView& step, Hits& hits) override {
    if (gradients_) note_gradients(step);
    return weights_.for_each(step, [&](const TensorRow& row) -> Status {
      const bool is_train = step.info().mode == Mode::train;
      if (is_train && !has_train_) {
        has_train_ = true;
        past_.clear();  // of other modes, which do not count any more
      }
      if (has_train_ && !is_train) return {};
      SMD_TRY(const TensorValue* now, step.value(row));
      if (now->dtype == DType::string || now->view().size() == 0) return {};
      const Step number = has_train_ ? step.info().mode_step : step.info().step;
      History& past = past_[{row.tensor, weights_.owner(row)}];
      forget(number, past);
      const bool is_frozen = gradients_ && !with_gradient_.contains(step.tensor(row));
      if (!past.empty() && !is_frozen) {
        has_judged_ = true;
        SMD_RETURN_IF_ERROR(judge(step, row, number, *now, past, hits));
      }
      if (!options_.num_steps) past.clear();
      if (HeldValue kept = values_.hold(*now, step.tensor(row))) {
        past.push_back({number, std::move(kept)});
      }
      return {};
    });
  }

  std::optional<std::string> missing() const override {
    if (has_judged_) return std::nullopt;
    return fmt::format(
        "It needs a weight at two steps{}, and the run has it at one.",
        options_.num_steps ? fmt::format(" that are at most {} apart", *options_.num_steps) : "");
  }

 private:
  struct Past {
    Step number = 0;
    HeldValue value;
  };
  using History = std::deque<Past>;  // possible partners of the next step, the earliest first

  // A gradient may be saved by one worker only, and at other steps than its weight.
  void note_gradients(const StepView& step) {
    gradients_->for_each(
        step, [&](const TensorRow& row) { with_gradient_.emplace(weight_of(step.tensor(row))); });
  }

  // Steps that are too far back, and those that a restarted job counts again.
  void forget(Step number, History& past) const {
    while (!past.empty() && past.back().number >= number) past.pop_back();
    if (!options_.num_steps) return;
    while (!past.empty() && past.front().number < number - *options_.num_steps) past.pop_front();
  }

  Status judge(const StepView& step, const TensorRow& row, Step number, const TensorValue& now,
               History& past, Hits& hits) const {
    const Past& partner = past.front();
    const TensorValue& before = *partner.value;
    const bool is_first = hits.empty();
    if (before.shape != now.shape) {
      Violation* hit = hits.add(step, row, "shape_changed", 1, Op::equal, 1);
      if (hit != nullptr) {
        hit->with("shape", Json(now.shape)).with("shape_before", Json(before.shape));
        hit->with("step_before", Json(partner.number));
      }
      if (is_first) {
        hits.say(fmt::format("The shape of '{}' has changed from ({}) to ({}).", step.tensor(row),
                             fmt::join(before.shape, ", "), fmt::join(now.shape, ", ")));
      }
      past.clear();
      return {};
    }
    SMD_TRY(const Norms norms, norms_of(now.view(), before.view()));
    if (options_.skip_zero_init && norms.before == 0) return {};
    const double ratio = norms.update / (norms.before + options_.epsilon);
    if (!std::isfinite(norms.update) || !std::isfinite(norms.before)) return {};
    const bool is_large = ratio > options_.large;
    if (!is_large && !(ratio < options_.small)) return {};
    const double threshold = is_large ? options_.large : options_.small;
    Violation* hit =
        hits.add(step, row, "update_ratio", ratio, is_large ? Op::above : Op::below, threshold);
    if (hit == nullptr) return {};
    hit->with("step_before", Json(partner.number))
        .with("bound", Json(is_large ? "large_threshold" : "small_threshold"))
        .with("weight_norm", norms.before)
        .with("update_norm", norms.update)
        .with("ratio_per_step", ratio / static_cast<double>(number - partner.number));
    if (!is_first) return {};
    if (norms.before == 0 && is_large) {
      hits.say(fmt::format("'{}' was zero at step {}, so every update is large beside it.",
                           step.tensor(row), partner.number));
    } else {
      hits.say(fmt::format("'{}' has moved by {:.4g} of its size since step {}, {} {:.4g}.",
                           step.tensor(row), ratio, partner.number,
                           is_large ? "more than" : "less than", threshold));
    }
    return {};
  }

  Selection weights_;
  std::optional<Selection> gradients_;  // only with skip_frozen
  const Options options_;
  HeldValues values_;
  std::map<std::pair<uint32_t, uint32_t>, History> past_;  // of TRAIN, or of all modes without it
  std::unordered_set<std::string> with_gradient_;
  bool has_train_ = false;
  bool has_judged_ = false;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "num_steps",
     .type = ParameterType::integer,
     .default_text = "",
     .help = "A weight is compared with its earliest value of at most so many steps before; not "
             "given, with the saved step before.",
     .range = "[1,]"},
    {.name = "large_threshold",
     .type = ParameterType::real,
     .default_text = "10.0",
     .help = "Fires when the norm of an update is more than so many times that of the weight."},
    {.name = "small_threshold",
     .type = ParameterType::real,
     .default_text = "0.00000001",
     .help = "Fires when the norm of an update is less than so many times that of the weight."},
    {.name = "epsilon",
     .type = ParameterType::real,
     .default_text = "0.000000001",
     .help = "Added to the norm of the weight, which may be zero.",
     .range = "[0,]"},
    {.name = "skip_frozen",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "Leave out weights of which no gradient was saved.",
     .is_extension = true},
    {.name = "skip_zero_init",
     .type = ParameterType::boolean,
     .default_text = "false",
     .help = "Leave out weights that were zero at the step before.",
     .is_extension = true},
    kMaxMemoryMib,
};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "500"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kWeights, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext& context) {
  Options options{.large = parameters.real("large_threshold"),
                  .small = parameters.real("small_threshold"),
                  .epsilon = parameters.real("epsilon"),
                  .skip_frozen = parameters.boolean("skip_frozen"),
                  .skip_zero_init = parameters.boolean("skip_zero_init")};
  if (parameters.has("num_steps")) options.num_steps = parameters.integer("num_steps");
  if (options.small > options.large) {
    return Error{ErrorCode::invalid_argument,
                 fmt::format("small_threshold of {} is {}, above large_threshold, which is {}.",
                             kName, options.small, options.large)};
  }
  SMD_TRY(auto weights, Selection::create({.what = "weights",
                                           .collections = {std::string(collection_keys::kWeights)},
                                           .values = true},
                                          parameters));
  std::optional<Selection> gradients;
  if (options.skip_frozen) {
    SMD_TRY(gradients,
            Selection::create(
                {.what = "gradients", .collections = {std::string(collection_keys::kGradients)}},
                parameters));
  }
  return make_rule<WeightUpdateRatio>(std::move(weights), std::move(gradients), options,
                                      HeldValues(kName, parameters, context.log));
}

}  // namespace

extern const RuleKind weight_update_ratio;
const RuleKind weight_update_ratio = {
    .name = kName,
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Weights move too much or too little for their size.",
    .sees =
        "The norm of each weight's change since an earlier saved step, divided by the norm of "
        "the weight there; fires when the ratio is above large_threshold or below "
        "small_threshold. Judges the mode TRAIN if weights were saved in it.",
    .why =
        "Updates larger than the weights throw away what was learned and often diverge; updates "
        "far below the precision of the weights change nothing.",
    .fix =
        "If it is too large, lower the learning rate, warm it up or clip gradients. If it is "
        "too small, raise the learning rate, look for vanishing gradients, and check that the "
        "optimizer holds these parameters. Frozen layers and layers that start at zero are "
        "known false alarms: give skip_frozen or skip_zero_init.",
    .parameters = kParameters,
    .collections = kCollections,
    .is_hint_unasked = true,
    .create = create,
};

}  // namespace smd::rules::builtin
