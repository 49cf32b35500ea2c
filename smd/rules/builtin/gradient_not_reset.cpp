#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "smd/collection/builtin.h"
#include "smd/rules/quantile.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// Norms of the first steps, which later ones are compared with.
constexpr size_t kFirst = 3;

struct Options {
  int64_t window = 60;
  int64_t least = 12;
  double smoothness = 0.15;
  double growth = 3;
  double share = 0.6;
};

// A gradient of one worker.
struct Track {
  std::deque<double> sums;
  std::vector<double> first_norms;
  double norm = 0;
  bool is_done = false;  // something that is not a number
};

class GradientNotReset final : public Rule {
 public:
  GradientNotReset(Selection gradients, const Options& options)
      : gradients_(std::move(gradients)), options_(options) {}

  std::vector<Selection*> selections() override { return {&gradients_}; }
  bool is_done() const override { return is_done_; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    size_t judged = 0;
    grown_.clear();
    gradients_.for_each(step, [&](const TensorRow& row) {
      Track& track = tracks_.of(row);
      const double sum = step.number(row, Statistic::sum);
      track.norm = step.number(row, Statistic::l2);
      if (!std::isfinite(sum) || !std::isfinite(track.norm)) track.is_done = true;
      if (track.is_done) return;
      if (track.first_norms.size() < kFirst) track.first_norms.push_back(track.norm);
      track.sums.push_back(sum);
      if (static_cast<int64_t>(track.sums.size()) > options_.window) track.sums.pop_front();
      if (static_cast<int64_t>(track.sums.size()) < options_.least) return;
      ++judged;
      if (adds_up(track)) grown_.push_back(&row);
    });
    if (judged == 0) return {};
    const double share = static_cast<double>(grown_.size()) / static_cast<double>(judged);
    if (!(share >= options_.share) || judged < 2) return {};
    is_done_ = true;
    for (const TensorRow* row : grown_) {
      Track& track = tracks_.of(*row);
      const double first = quantile(track.first_norms, 0.5);
      Violation* hit =
          hits.add(step, *row, "norm_growth", track.norm / first, Op::above, options_.growth);
      if (hit != nullptr) hit->with("norm", track.norm).with("first_norm", first);
    }
    hits.say(
        fmt::format("{} of {} gradients grow like a sum of all steps so far, each one hardly "
                    "different from the one before.",
                    grown_.size(), judged));
    return {};
  }

 private:
  // Gradients of single batches jump around their mean; their running sum walks.
  bool adds_up(Track& track) const {
    const double first = quantile(track.first_norms, 0.5);
    if (!(first > 0) || !(track.norm > options_.growth * first)) return false;
    const auto count = static_cast<double>(track.sums.size());
    double mean = 0;
    for (double sum : track.sums) mean += sum / count;
    double variance = 0;
    for (double sum : track.sums) variance += (sum - mean) * (sum - mean) / count;
    double change = 0;
    for (size_t i = 1; i < track.sums.size(); ++i) {
      change += (track.sums[i] - track.sums[i - 1]) * (track.sums[i] - track.sums[i - 1]);
    }
    return variance > 0 && change / (count - 1) < options_.smoothness * variance;
  }

  Selection gradients_;
  Options options_;
  RowTable<Track> tracks_;
  std::vector<const TensorRow*> grown_;  // at this step
  bool is_done_ = false;
};

constexpr ParameterSpec kParameters[] = {
    {.name = "window",
     .type = ParameterType::integer,
     .default_text = "60",
     .help = "How many saved steps are looked at.",
     .range = "[5,]"},
    {.name = "smoothness",
     .type = ParameterType::real,
     .default_text = "0.15",
     .help = "Mean squared change from step to step over the variance; independent batches have "
             "2, a running sum next to 0.",
     .range = "(0,]"},
    {.name = "growth",
     .type = ParameterType::real,
     .default_text = "3",
     .help = "The norm must have grown by this factor, too.",
     .range = "(1,]"},
    {.name = "share",
     .type = ParameterType::real,
     .default_text = "0.6",
     .help = "Fires when at least this share of the gradients does so.",
     .range = "(0,1]"},
};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "1"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kGradients, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .exclude = {"^reduced_gradient"},
                             .statistics = {Statistic::sum, Statistic::l2}},
                            parameters));
  Options options{.window = parameters.integer("window"),
                  .smoothness = parameters.real("smoothness"),
                  .growth = parameters.real("growth"),
                  .share = parameters.real("share")};
  options.least = std::min(options.least, options.window);
  return make_rule<GradientNotReset>(std::move(gradients), options);
}

}  // namespace

extern const RuleKind gradient_not_reset;
const RuleKind gradient_not_reset = {
    .name = "GradientNotReset",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "Gradients add up over all steps.",
    .sees =
        "The sum and the norm of each gradient at every step; fires when for most of them the "
        "norm grows while the sum changes little from step to step, as a running total does.",
    .why =
        "Each update is made of all batches so far. The training overshoots and swings, and "
        "often still goes down, so nobody looks for it.",
    .fix =
        "Set gradients to zero in every step (optimizer.zero_grad()), or after every so many "
        "steps where they are accumulated on purpose.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
