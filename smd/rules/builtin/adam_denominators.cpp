#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "smd/rules/quantile.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// The first steps have hardly any second moments.
constexpr int64_t kFirstChecks = 10;
// Adam's usual decay of the second moment, for the correction of its bias.
constexpr double kDecay = 0.999;

struct Options {
  std::optional<double> epsilon;  // nullopt: as recorded, or kUsualEpsilon
  double factor = 10;
  double noise = 1e-4;
  int64_t patience = 10;
};
constexpr double kUsualEpsilon = 1e-8;

struct Track {
  int64_t checks = 0;
  int64_t noisy = 0;  // in a row
};

class AdamDenominators final : public Rule {
 public:
  AdamDenominators(Selection moments, Selection epsilons, const Options& options)
      : moments_(std::move(moments)), epsilons_(std::move(epsilons)), options_(options) {}

  std::vector<Selection*> selections() override { return {&moments_, &epsilons_}; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    epsilons_.for_each(
        step, [&](const TensorRow& row) { recorded_ = step.number(row, Statistic::mean); });
    const double epsilon = options_.epsilon.value_or(recorded_.value_or(kUsualEpsilon));
    judged_.clear();
    scales_.clear();
    moments_.for_each(step, [&](const TensorRow& row) {
      const double mean = step.number(row, Statistic::mean);
      Track& track = tracks_.of(row);
      ++track.checks;
      if (!std::isfinite(mean) || mean <= 0 || track.checks <= kFirstChecks) return;
      const double bias = 1 - std::pow(kDecay, static_cast<double>(track.checks));
      judged_.push_back({&row, std::sqrt(mean / bias)});
      scales_.push_back(judged_.back().scale);
    });
    if (judged_.size() < 2) return {};
    const double median = quantile(scales_, 0.5);
    judge_large(step, median, epsilon, hits);
    judge_small(step, median, epsilon, hits);
    return {};
  }

 private:
  struct Judged {
    const TensorRow* row = nullptr;
    double scale = 0;  // root mean square of the gradient
  };

  void judge_large(const StepView& step, double median, double epsilon, Hits& hits) {
    in_a_row_ = median < options_.factor * epsilon ? in_a_row_ + 1 : 0;
    if (in_a_row_ != options_.patience) return;
    size_t count = 0;
    for (const Judged& one : judged_) {
      if (!(one.scale < options_.factor * epsilon)) continue;
      ++count;
      Violation* hit = hits.add(step, *one.row, "root_second_moment", one.scale, Op::below,
                                options_.factor * epsilon);
      if (hit != nullptr) hit->with("epsilon", epsilon);
    }
    hits.say(
        fmt::format("Epsilon, {:g}, is not small beside the gradients: {} of {} second "
                    "moments have roots below {:g} times it.",
                    epsilon, count, judged_.size(), options_.factor));
  }

  void judge_small(const StepView& step, double median, double epsilon, Hits& hits) {
    for (const Judged& one : judged_) {
      Track& track = tracks_.of(*one.row);
      const bool is_noise =
          one.scale < options_.noise * median && one.scale > options_.factor * epsilon;
      track.noisy = is_noise ? track.noisy + 1 : 0;
      if (track.noisy != options_.patience) continue;
      Violation* hit = hits.add(step, *one.row, "root_second_moment", one.scale, Op::below,
                                options_.noise * median);
      if (hit != nullptr) hit->with("epsilon", epsilon).with("median", median);
      hits.say(
          fmt::format("The gradients behind '{}' are around {:.1g}, those of others around "
                      "{:.1g}; with an epsilon of {:g} this noise moves it as fast as them.",
                      step.tensor(*one.row), one.scale, median, epsilon));
    }
  }

  Selection moments_;
  Selection epsilons_;
  Options options_;
  std::optional<double> recorded_;
  RowTable<Track> tracks_;
  std::vector<Judged> judged_;  // at this step
  std::vector<double> scales_;  // the same
  int64_t in_a_row_ = 0;        // checks
};

constexpr ParameterSpec kParameters[] = {
    {.name = "moments_regex",
     .type = ParameterType::list,
     .default_text = "exp_avg_sq",
     .help = "The second moments of Adam."},
    {.name = "epsilon",
     .type = ParameterType::real,
     .default_text = "",
     .help = "Adam's epsilon; not given, a recorded number with such a name, or else 1e-8.",
     .range = "(0,]"},
    {.name = "factor",
     .type = ParameterType::real,
     .default_text = "10",
     .help = "Roots of second moments should be above so many epsilons.",
     .range = "(0,]"},
    {.name = "noise",
     .type = ParameterType::real,
     .default_text = "1e-4",
     .help = "Gradients below this share of those of the median tensor are noise, which epsilon "
             "should hold down.",
     .range = "(0,1)"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "10",
     .help = "So many checks in a row are an alarm.",
     .range = "[1,]"},
};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  Options options{.factor = parameters.real("factor"),
                  .noise = parameters.real("noise"),
                  .patience = parameters.integer("patience")};
  if (parameters.has("epsilon")) options.epsilon = parameters.real("epsilon");
  SMD_TRY(auto moments, Selection::create({.what = "second moments of Adam",
                                           .patterns = parameters.list("moments_regex"),
                                           .statistics = {Statistic::mean}},
                                          parameters));
  SMD_TRY(auto epsilons, Selection::create({.what = "the epsilon of Adam",
                                            .patterns = {"(?i)(^|[/_.])eps(ilon)?$"},
                                            .statistics = {Statistic::mean},
                                            .is_required = false},
                                           parameters));
  return make_rule<AdamDenominators>(std::move(moments), std::move(epsilons), options);
}

}  // namespace

extern const RuleKind adam_denominators;
const RuleKind adam_denominators = {
    .name = "AdamDenominators",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Adam's epsilon is too large or too small for the gradients.",
    .sees =
        "The roots of the second moments, which are the size of the gradients, against epsilon; "
        "fires when most of them are not well above it, or when one tensor whose gradients are "
        "nothing but noise beside those of others is not held down by it.",
    .why =
        "With a large epsilon Adam becomes plain gradient descent with a tiny learning rate. "
        "With too small a one, parameters whose gradients are rounding errors move as fast as "
        "those that learn.",
    .fix =
        "Use 1e-8, or 1e-6 and less where gradients are small or half precision is used; scale "
        "the loss if all gradients are tiny.",
    .parameters = kParameters,
    .create = create,
};

}  // namespace smd::rules::builtin
