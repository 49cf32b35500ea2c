#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "smd/collection/builtin.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

// Of the norm of one gradient.
struct Track {
  double usual = 0;     // mean of recent ones that were not low
  int64_t alive = 0;    // checks that made it
  int64_t low = 0;      // checks in a row, with this one
  int64_t longest = 0;  // spell of low ones that has ended
  Step since = 0;       // when this spell began
};

struct Options {
  double fallen = 1e-3;
  int64_t warm_up = 5;
  int64_t patience = 10;
};

class LayerStopped final : public Rule {
 public:
  LayerStopped(Selection gradients, const Options& options)
      : gradients_(std::move(gradients)), options_(options) {}

  std::vector<Selection*> selections() override { return {&gradients_}; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    stopped_.clear();
    size_t judged = 0;
    size_t low = 0;
    gradients_.for_each(step, [&](const TensorRow& row) {
      const double norm = step.number(row, Statistic::l2);
      if (!std::isfinite(norm)) return;
      Track& track = tracks_.of(row);
      follow(track, norm, step.info().step);
      if (track.alive < options_.warm_up) return;
      ++judged;
      low += track.low > 0 ? 1 : 0;
      // A gradient that rests now and then, as that of rare words does, may rest for longer.
      if (track.low == std::max(options_.patience, kRests * track.longest)) {
        stopped_.push_back(&row);
      }
    });
    // Where most gradients fade there is nothing left to learn, or another rule speaks.
    if (2 * low > judged) return {};
    for (const TensorRow* row : stopped_) {
      const Track& track = tracks_.of(*row);
      const double norm = step.number(*row, Statistic::l2);
      Violation* hit =
          hits.add(step, *row, "norm_ratio", norm / track.usual, Op::below, options_.fallen);
      if (hit != nullptr) {
        hit->with("norm", norm)
            .with("usual_norm", track.usual)
            .with("since_step", static_cast<double>(track.since));
      }
      hits.say(
          fmt::format("'{}' has stopped at step {}: its norm is {:.3g}, before it was {:.3g}, "
                      "while {} of {} gradients go on.",
                      step.tensor(*row), track.since, norm, track.usual, judged - low, judged));
    }
    return {};
  }

 private:
  static constexpr int64_t kRests = 3;
  static constexpr double kNewest = 0.2;  // weight of the newest norm in `usual`

  void follow(Track& track, double norm, Step step) const {
    if (track.alive > 0 && norm < options_.fallen * track.usual) {
      if (track.low++ == 0) track.since = step;
      return;
    }
    track.longest = std::max(track.longest, std::exchange(track.low, 0));
    if (!(norm > 0)) return;  // it has not begun
    track.usual = track.alive == 0 ? norm : track.usual + kNewest * (norm - track.usual);
    ++track.alive;
  }

  Selection gradients_;
  Options options_;
  RowTable<Track> tracks_;
  std::vector<const TensorRow*> stopped_;  // at this step
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "fallen",
     .type = ParameterType::real,
     .default_text = "1e-3",
     .help = "A gradient is low when its norm is below this share of what was usual.",
     .range = "(0,1)"},
    {.name = "warm_up",
     .type = ParameterType::integer,
     .default_text = "5",
     .help = "So many checks tell what is usual.",
     .range = "[1,]"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "10",
     .help = "So many low checks in a row are an alarm; three times the longest spell before, if "
             "that is more.",
     .range = "[1,]"},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kGradients}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SelectionOptions selected{.what = "gradients",
                            .collections = parameters.list("collection_names"),
                            .patterns = parameters.list("tensor_regex"),
                            .statistics = {Statistic::l2}};
  if (selected.collections.empty() && selected.patterns.empty()) {
    selected.collections.emplace_back(collection_keys::kGradients);
  }
  SMD_TRY(auto gradients, Selection::create(std::move(selected), parameters));
  return make_rule<LayerStopped>(std::move(gradients),
                                 Options{.fallen = parameters.real("fallen"),
                                         .warm_up = parameters.integer("warm_up"),
                                         .patience = parameters.integer("patience")});
}

}  // namespace

extern const RuleKind layer_stopped;
const RuleKind layer_stopped = {
    .name = "LayerStopped",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "A layer stops to learn while the others go on.",
    .sees =
        "The norm of each gradient against what was usual for it; fires when it has fallen to a "
        "thousandth and stays there while most other gradients go on.",
    .why =
        "The layer stays as it is from then on: its units are dead, its input is constant, or the "
        "graph is cut behind it. The loss hardly tells, as the other layers learn around it.",
    .fix =
        "Look at what comes after the layer at that step: units that a large update has killed, a "
        "branch that is switched off, detach() or no_grad(). Lower the learning rate or clip "
        "gradients if a spike came before. If it was frozen on purpose, set requires_grad to "
        "False.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
