#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/collection/builtin.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  double factor = 2;
  int64_t checks = 5;
  double weight_limit = 1e8;
  double gradient_limit = 1e6;
};

struct Track {
  bool is_known = false;
  double last = 0;
  double start = 0;    // before the growth
  double largest = 0;  // of all that was before the growth
  int64_t grown = 0;
  bool is_told = false;
};

class GrowthDivergence final : public Rule {
 public:
  GrowthDivergence(Selection weights, Selection gradients, const Options& options)
      : weights_(std::move(weights)), gradients_(std::move(gradients)), options_(options) {}

  std::vector<Selection*> selections() override { return {&weights_, &gradients_}; }

  Status observe(const StepView& step, Hits& hits) override {
    weights_.for_each(step,
                      [&](const TensorRow& row) { judge(step, row, options_.weight_limit, hits); });
    // Gradients through a weight that is too large are an effect of it.
    if (!hits.empty()) return {};
    gradients_.for_each(
        step, [&](const TensorRow& row) { judge(step, row, options_.gradient_limit, hits); });
    return {};
  }

 private:
  void judge(const StepView& step, const TensorRow& row, double limit, Hits& hits) {
    const double now = step.number(row, Statistic::abs_mean);
    Track& track = tracks_.of(row, step.info().mode);
    if (!std::isfinite(now)) return;
    // What begins at zero grows by any factor.
    const bool has_grown = track.is_known && track.last > 0 && now >= options_.factor * track.last;
    if (!has_grown) {
      track.start = now;
      track.largest = std::max(track.largest, now);
    }
    track.grown = has_grown ? track.grown + 1 : 0;
    // What comes back from a dip to where it was does not run away.
    const bool runs_away = track.grown >= options_.checks && now > options_.factor * track.largest;
    const bool is_bad = runs_away || now > limit;
    if (is_bad && !track.is_told) {
      const bool is_limit = now > limit;
      Violation* hit = hits.add(
          step, row, is_limit ? "abs_mean" : "growth", is_limit ? now : now / track.start,
          Op::above,
          is_limit ? limit : std::pow(options_.factor, static_cast<double>(options_.checks)));
      if (hit != nullptr) hit->with("abs_mean", now).with("abs_mean_before", track.start);
      // Nothing that learns has such weights: the run is lost.
      if (is_limit) hits.set_severity(Severity::error);
      hits.say(is_limit
                   ? fmt::format("The mean magnitude of '{}' is {:.3g}, above {:.3g}.",
                                 step.tensor(row), now, limit)
                   : fmt::format("The mean magnitude of '{}' has grown by at least {:g} times "
                                 "in each of {} checks, from {:.3g} to {:.3g}.",
                                 step.tensor(row), options_.factor, track.grown, track.start, now));
    }
    track.is_told = is_bad;
    track.last = now;
    track.is_known = true;
  }

  Selection weights_;
  Selection gradients_;
  Options options_;
  RowTable<Track> tracks_;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "factor",
     .type = ParameterType::real,
     .default_text = "2",
     .help = "Growth from one saved step to the next that counts.",
     .range = "(1,]"},
    {.name = "checks",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "So many such saved steps in a row are an alarm.",
     .range = "[2,]"},
    {.name = "weight_limit",
     .type = ParameterType::real,
     .default_text = "1e8",
     .help = "A mean magnitude of a weight above it is an alarm at once.",
     .range = "(0,]"},
    {.name = "gradient_limit",
     .type = ParameterType::real,
     .default_text = "1e6",
     .help = "A mean magnitude of a gradient above it is an alarm at once.",
     .range = "(0,]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto weights, Selection::create({.what = "weights",
                                           .collections = {std::string(collection_keys::kWeights),
                                                           std::string(collection_keys::kBiases)},
                                           .exclude = {"^gradient", "^feature_importance"},
                                           .statistics = {Statistic::abs_mean},
                                           .is_required = false},
                                          parameters));
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .statistics = {Statistic::abs_mean},
                             .is_required = false},
                            parameters));
  return make_rule<GrowthDivergence>(std::move(weights), std::move(gradients),
                                     Options{.factor = parameters.real("factor"),
                                             .checks = parameters.integer("checks"),
                                             .weight_limit = parameters.real("weight_limit"),
                                             .gradient_limit = parameters.real("gradient_limit")});
}

}  // namespace

extern const RuleKind growth_divergence;
const RuleKind growth_divergence = {
    .name = "GrowthDivergence",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "A weight or gradient grows by a factor again and again, or is enormous.",
    .sees =
        "The mean magnitude of each weight and gradient; fires when it grows by the factor in "
        "each of several saved steps, or passes the limit.",
    .why =
        "Growth by a factor leads to infinity in a few more steps; it can be stopped now, and "
        "NaN cannot be undone.",
    .fix =
        "Lower the learning rate, clip gradients, and check that the sign of the update and of "
        "regularisation terms is right. For one layer alone, look at its initialisation and "
        "normalisation.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
