#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <tuple>

#include "smd/collection/builtin.h"
#include "smd/rules/elements.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

constexpr size_t kMostReached = 16;
// Of the largest number of a type: what comes so near is about to overflow.
constexpr double kNearShare = 0.01;
constexpr double kGrowth = 4;

struct Options {
  int64_t history = 5;
  int64_t gradient_patience = 3;
};

// Tells classes of tensors apart; none of them is read for this.
struct Classes {
  Selection gradients;
  Selection losses;
  Selection weights;
};

// What the steps before tell of one tensor.
struct Past {
  struct Point {
    Step step = 0;
    double abs_max = 0;
  };
  std::deque<Point> points;            // finite ones
  bool is_infinite_by_design = false;  // holds -inf in steps in which nothing was wrong
};

// The first tensor of a step that went wrong.
struct Origin {
  StepInfo step;
  double wall_secs = 0;
  uint32_t tensor = 0;
  uint32_t worker = 0;
  double count = 1;
  Json context = Json::object();
  std::string message;
};

class NonFiniteOrigin final : public Rule {
 public:
  NonFiniteOrigin(Selection tensors, Classes classes, const Options& options)
      : tensors_(std::move(tensors)), classes_(std::move(classes)), options_(options) {}

  std::vector<Selection*> selections() override { return {&tensors_}; }

  Status observe(const StepView& step, Hits& hits) override {
    rows_.clear();
    bool is_any = false;
    tensors_.for_each(step, [&](const TensorRow& row) {
      rows_.push_back({&row, step.number(row, Statistic::nonfinite) == 1});
      is_any = is_any || rows_.back().is_bad;
    });
    SMD_TRY(const bool is_wrong, is_any ? find_wrong(step) : Result<bool>(false));
    if (is_wrong) {
      SMD_RETURN_IF_ERROR(go_on(step, hits));
    } else {
      pending_.reset();
      has_fired_ = false;
      gradient_steps_ = 0;
    }
    remember(step, !is_wrong);
    if (!rows_.empty()) last_step_ = step.info().step;
    return {};
  }

  Status finish(const RunView& run, Hits& hits) override {
    if (!pending_ || has_fired_) return {};
    // The run ends with gradients that may be those of a loss scale that is too high.
    hits.set_severity(Severity::info);
    fire(run, hits);
    return {};
  }

 private:
  struct Row {
    const TensorRow* row = nullptr;
    bool is_bad = false;
    bool is_harmless = false;       // -inf that stands there on purpose
    bool is_negative_only = false;  // -inf is all that is not finite
    std::tuple<int, uint32_t, uint32_t> place{};
  };

  // Forward, losses, gradients, and weights before or after these, as they were saved. Names tell
  // more than the order where the first step of a run did not save everything.
  void sort_rows(const StepView& step) {
    uint32_t first_gradient = UINT32_MAX;
    for (const Row& one : rows_) {
      if (classes_.gradients.holds(step.run(), one.row->tensor)) {
        first_gradient = std::min(first_gradient, one.row->order);
      }
    }
    for (Row& one : rows_) {
      const uint32_t tensor = one.row->tensor;
      int stage = 0;
      if (classes_.gradients.holds(step.run(), tensor)) {
        stage = 2;
      } else if (classes_.losses.holds(step.run(), tensor)) {
        stage = 1;
      } else if (one.row->has(Statistic::value)) {
        stage = 3;  // metrics tell of others
      } else if (one.row->order > first_gradient && classes_.weights.holds(step.run(), tensor)) {
        stage = 3;  // after the update
      }
      one.place = {stage, one.row->order, one.row->worker};
    }
    std::ranges::sort(rows_, {}, &Row::place);
  }

  Result<bool> is_negative_only(const StepView& step, const TensorRow& row) const {
    if (row.has(Statistic::max) && row.has(Statistic::has_nan)) {
      return step.number(row, Statistic::has_nan) == 0 &&
             !(step.number(row, Statistic::max) == HUGE_VAL);
    }
    if (!row.has_value) return false;
    SMD_TRY(const TensorValue* value, step.value(row));
    SMD_TRY(const SpecialElements seen, find_special(value->view()));
    return seen.nan_count == 0 && seen.positive_inf_count == 0;
  }

  // Whether something is wrong; marks what is not. Masks and masked scores hold -inf on purpose:
  // what is computed from them is finite.
  Result<bool> find_wrong(const StepView& step) {
    sort_rows(step);
    bool is_next_finite = true;
    for (size_t i = rows_.size(); i-- > 0;) {
      Row& one = rows_[i];
      if (one.is_bad) {
        SMD_TRY(one.is_negative_only, is_negative_only(step, *one.row));
        one.is_harmless = one.is_negative_only && std::get<0>(one.place) == 0 &&
                          !classes_.weights.holds(step.run(), one.row->tensor) &&
                          (history_.of(*one.row).is_infinite_by_design || is_next_finite);
      }
      is_next_finite = !one.is_bad || one.is_harmless;
    }
    return std::ranges::any_of(rows_,
                               [](const Row& one) { return one.is_bad && !one.is_harmless; });
  }

  Status go_on(const StepView& step, Hits& hits) {
    const bool only_gradients = std::ranges::all_of(rows_, [&](const Row& one) {
      return !one.is_bad || one.is_harmless || std::get<0>(one.place) == 2;
    });
    if (!pending_) {
      SMD_TRY(pending_, find_origin(step));
    }
    gradient_steps_ = only_gradients ? gradient_steps_ + 1 : options_.gradient_patience + 1;
    if (has_fired_ || gradient_steps_ <= options_.gradient_patience) return {};
    fire(step.run(), hits);
    return {};
  }

  void fire(const RunView& run, Hits& hits) {
    has_fired_ = true;
    hits.set_step(pending_->step, pending_->wall_secs);
    Violation* hit = hits.add(run, pending_->tensor, pending_->worker, "nonfinite_count",
                              pending_->count, Op::above, 0);
    if (hit != nullptr) hit->context = pending_->context;
    hits.say(pending_->message);
  }

  Result<Origin> find_origin(const StepView& step) {
    const auto is_wrong = [](const Row& one) { return one.is_bad && !one.is_harmless; };
    const auto first = std::ranges::find_if(rows_, is_wrong);
    const TensorRow& row = *first->row;
    Origin out{.step = step.info(),
               .wall_secs = step.wall_secs(),
               .tensor = row.tensor,
               .worker = row.worker};
    std::optional<SpecialElements> seen;
    std::optional<double> limit;
    if (row.has_value) {
      SMD_TRY(const TensorValue* value, step.value(row));
      SMD_TRY(seen, find_special(value->view()));
      limit = max_finite(value->dtype);
      out.count = static_cast<double>(seen->nan_count + seen->positive_inf_count +
                                      seen->negative_inf_count);
      out.context["nan_count"] = seen->nan_count;
      out.context["positive_inf_count"] = seen->positive_inf_count;
      out.context["negative_inf_count"] = seen->negative_inf_count;
      out.context["first_index"] = seen->first_index;
      out.context["largest_finite"] = seen->largest_finite;
      out.context["dtype"] = name_of(value->dtype);
    }
    const bool has_nan = seen ? seen->nan_count > 0 : step.number(row, Statistic::has_nan) == 1;
    const std::string cause = cause_of(step, *first, seen, limit, has_nan);
    out.context["kind"] = cause.substr(0, cause.find(':'));

    const TensorRow* before = nullptr;
    for (const Row* one = rows_.data(); one != &*first; ++one) {
      if (!one->is_bad) before = one->row;
    }
    if (before != nullptr) {
      out.context["finite_before"] = step.tensor(*before);
      if (before->has(Statistic::abs_max)) {
        out.context["abs_max_before"] = step.number(*before, Statistic::abs_max);
      }
    }
    Json climb = Json::array();
    for (const Past::Point& point : history_.of(row).points) {
      climb.push_back({{"step", point.step}, {"abs_max", point.abs_max}});
    }
    out.context["climb"] = std::move(climb);
    Json reached = Json::array();
    size_t count = 0;
    for (const Row& one : rows_) {
      if (&one == &*first || !is_wrong(one)) continue;
      if (count++ < kMostReached) reached.push_back(step.tensor(*one.row));
    }
    out.context["reached"] = std::move(reached);
    out.context["reached_count"] = count;
    if (last_step_) out.context["last_finite_step"] = *last_step_;

    out.message = fmt::format(
        "'{}' is the first tensor with {}{}{}. Likely {}.{}", step.tensor(row),
        has_nan ? "NaN" : "infinity",
        !last_step_                          ? ", in the first step that was saved"
        : step.info().step - *last_step_ > 1 ? fmt::format(", some time after step {}", *last_step_)
                                             : "",
        before == nullptr ? "" : fmt::format("; '{}' before it is finite", step.tensor(*before)),
        cause,
        count == 0 ? ""
                   : fmt::format(" {} other tensor{} of the step hold{} such values, too.", count,
                                 count == 1 ? "" : "s", count == 1 ? "s" : ""));
    return out;
  }

  // "overflow: …".
  std::string cause_of(const StepView& step, const Row& first,
                       const std::optional<SpecialElements>& seen, std::optional<double> limit,
                       bool has_nan) {
    const TensorRow& row = *first.row;
    if (classes_.weights.holds(step.run(), row.tensor) && std::get<0>(first.place) == 0) {
      return "update: the step before wrote it into the weights";
    }
    const auto& points = history_.of(row).points;
    double near = seen ? seen->largest_finite : 0;
    if (!points.empty()) near = std::max(near, points.back().abs_max);
    const bool is_near =
        limit ? near >= kNearShare * *limit : (near >= 6550 && near <= 65504) || near >= 1e36;
    const bool has_grown =
        points.size() >= 3 && points.back().abs_max >= kGrowth * points.front().abs_max;
    if (is_near) return fmt::format("overflow: magnitudes had come up to {:.3g}", near);
    if (has_grown) {
      return fmt::format(
          "overflow: its largest magnitude grew from {:.3g} at step {} to {:.3g} at "
          "step {}",
          points.front().abs_max, points.front().step, points.back().abs_max, points.back().step);
    }
    if (first.is_negative_only) return "logarithm: of zero";
    if (!has_nan) return "division: by zero, or an overflow in one step";
    return "invalid operation: 0/0, or the logarithm or root of a negative number";
  }

  void remember(const StepView& step, bool is_healthy) {
    for (const Row& one : rows_) {
      Past& past = history_.of(*one.row);
      if (one.is_bad) {
        if (is_healthy && one.is_harmless) past.is_infinite_by_design = true;
        continue;
      }
      if (!one.row->has(Statistic::abs_max)) continue;
      past.points.push_back({step.info().step, step.number(*one.row, Statistic::abs_max)});
      if (static_cast<int64_t>(past.points.size()) > options_.history) past.points.pop_front();
    }
  }

  Selection tensors_;
  Classes classes_;
  Options options_;
  std::vector<Row> rows_;  // of this step
  RowTable<Past> history_;
  std::optional<Step> last_step_;
  std::optional<Origin> pending_;  // of the steps that are wrong now
  bool has_fired_ = false;
  int64_t gradient_steps_ = 0;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    kAllWorkers,
    {.name = "history",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "Steps before of which the largest magnitude is shown.",
     .range = "[1,1000]"},
    {.name = "gradient_patience",
     .type = ParameterType::integer,
     .default_text = "3",
     .help = "Steps in a row in which gradients alone may be wrong, as they are while a loss scale "
             "is searched for.",
     .range = "[0,]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto tensors, Selection::create({.what = "tensors",
                                           .collections = parameters.list("collection_names"),
                                           .patterns = parameters.list("tensor_regex"),
                                           // Leaves of trees have no split, which is NaN.
                                           .exclude = {"^trees/"},
                                           .statistics = {Statistic::nonfinite},
                                           .context = {Statistic::value, Statistic::has_nan,
                                                       Statistic::max, Statistic::abs_max}},
                                          parameters));
  const auto of = [&](std::string_view collection) {
    return Selection::create({.collections = {std::string(collection)}}, parameters);
  };
  SMD_TRY(auto gradients, of(collection_keys::kGradients));
  SMD_TRY(auto losses, of(collection_keys::kLosses));
  SMD_TRY(auto weights,
          Selection::create({.collections = {std::string(collection_keys::kWeights),
                                             std::string(collection_keys::kBiases),
                                             std::string(collection_keys::kOptimizerVariables)}},
                            parameters));
  return make_rule<NonFiniteOrigin>(
      std::move(tensors), Classes{std::move(gradients), std::move(losses), std::move(weights)},
      Options{.history = parameters.integer("history"),
              .gradient_patience = parameters.integer("gradient_patience")});
}

}  // namespace

extern const RuleKind non_finite_origin;
const RuleKind non_finite_origin = {
    .name = "NonFiniteOrigin",
    .group = RuleGroup::deep_learning,
    .severity = Severity::error,
    .summary = "Where NaN or infinity came from: the first tensor of the step that holds it.",
    .sees =
        "All tensors of a step in the order in which they were computed; fires when values "
        "that are not finite appear, names the first tensor that has them, the finite one "
        "before it, how its magnitude grew, and the tensors that were reached. Tensors that "
        "hold -inf on purpose, such as masks, are told by what is computed from them.",
    .why =
        "NaN spreads to everything that is computed from it and, with the next update, to all "
        "weights; only the place where it began tells what to change.",
    .fix =
        "Overflow: lower the learning rate, clip gradients, use bfloat16 or a lower loss scale. "
        "Logarithm, root or division: add a small constant or clamp the input of the named "
        "tensor. Update: look at gradients and learning rate of the step before. Save tensors "
        "of the layers around it at every step to come closer.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
