#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "smd/collection/builtin.h"
#include "smd/rules/number_text.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"
#include "smd/rules/spike.h"

namespace smd::rules::builtin {
namespace {

constexpr size_t kMostLayers = 3;

// A gradient and its part of the global norm.
struct Share {
  uint32_t tensor = 0;
  double norm = 0;
  double share = 0;   // of the square
  double growth = 0;  // against the step before; NaN: not known
};

// The global norm of one worker over one set of tensors: steps that save other gradients cannot be
// compared with it.
struct Series {
  std::optional<Spike> spike;
  double began_secs = 0;
  std::vector<Share> shares;  // when it began, the largest first
  bool is_told = false;
  bool is_linked = false;  // to a loss
};

class GradientSpike final : public Rule {
 public:
  GradientSpike(Selection gradients, Selection losses, const SpikeOptions& options,
                int64_t lead_steps)
      : gradients_(std::move(gradients)),
        losses_(std::move(losses)),
        options_(options),
        lead_steps_(lead_steps) {}

  std::vector<Selection*> selections() override { return {&gradients_, &losses_}; }

  Status observe(const StepView& step, Hits& hits) override {
    worst_ = Severity::info;
    workers_.clear();
    gradients_.for_each(step, [&](const TensorRow& row) {
      const double norm = step.number(row, Statistic::l2);
      double& last = last_norms_.of(row, step.info().mode).norm;
      Now& now = workers_[row.worker];
      now.key = now.key * 31 + row.tensor + 1;
      now.shares.push_back({.tensor = row.tensor, .norm = norm, .growth = norm / last});
      last = norm;
    });
    for (auto& [worker, now] : workers_) judge(step, worker, now, hits);
    judge_losses(step, hits);
    return {};
  }

  Status finish(const RunView& run, Hits& hits) override {
    worst_ = Severity::info;
    for (auto& [key, series] : series_) {
      if (!series.spike->is_open() || series.is_told) continue;
      report(run, key.worker, series, "had not come back when the run ended", Severity::info, hits);
    }
    return {};
  }

 private:
  struct Now {
    uint64_t key = 0;
    std::vector<Share> shares;
  };
  struct Norm {
    double norm = std::nan("");
  };
  struct Key {
    uint32_t worker = 0;
    Mode mode = Mode::global;
    uint64_t tensors = 0;
    auto operator<=>(const Key&) const = default;
  };
  struct Loss {
    std::optional<Spike> spike;
  };

  void judge(const StepView& step, uint32_t worker, Now& now, Hits& hits) {
    double squares = 0;
    for (const Share& one : now.shares) squares += one.norm * one.norm;
    Series& series = series_[{worker, step.info().mode, now.key}];
    if (!series.spike) series.spike.emplace(options_);
    Spike& spike = *series.spike;
    const Spike::Event event = spike.add(std::sqrt(squares), step.info());
    switch (event) {
      case Spike::Event::began:
        series.began_secs = step.wall_secs();
        series.is_told = series.is_linked = false;
        for (Share& one : now.shares) one.share = one.norm * one.norm / squares;
        std::ranges::stable_sort(now.shares, std::greater<>(), &Share::share);
        series.shares.assign(now.shares.begin(),
                             now.shares.begin() + static_cast<std::ptrdiff_t>(
                                                      std::min(now.shares.size(), kMostLayers)));
        break;
      case Spike::Event::alarm:
        // Networks that begin to learn something new show this, too.
        report(step.run(), worker, series,
               fmt::format("has stayed there for {} values", spike.length()), Severity::info, hits);
        break;
      case Spike::Event::ended:
        if (series.is_told) break;
        hits.set_step(spike.began_at(), series.began_secs);
        report(step.run(), worker, series,
               fmt::format("came back after {} value{}", spike.length(),
                           spike.length() == 1 ? "" : "s"),
               Severity::info, hits);
        break;
      case Spike::Event::settled:
      case Spike::Event::none: break;
    }
  }

  // A loss that rose soon after the gradients, not with them, and stays high.
  void judge_losses(const StepView& step, Hits& hits) {
    losses_.for_each(step, [&](const TensorRow& row) {
      Loss& loss = loss_.of(row, step.info().mode);
      if (!loss.spike) loss.spike.emplace(options_);
      if (loss.spike->add(step.number(row, Statistic::mean), step.info()) != Spike::Event::alarm) {
        return;
      }
      for (auto& [key, series] : series_) {
        if (key.mode != step.info().mode || series.shares.empty() || series.is_linked) continue;
        const Step lead = loss.spike->began_at().step - series.spike->began_at().step;
        if (lead < 1 || lead > lead_steps_) continue;
        series.is_linked = true;
        report(step.run(), key.worker, series,
               fmt::format("'{}' followed {} step{} later", step.tensor(row), lead,
                           lead == 1 ? "" : "s"),
               Severity::warning, hits);
      }
    });
  }

  void report(const RunView& run, uint32_t worker, Series& series, const std::string& outcome,
              Severity severity, Hits& hits) {
    const Spike& spike = *series.spike;
    series.is_told = true;
    worst_ = std::max(worst_, severity);
    hits.set_severity(worst_);
    for (const Share& one : series.shares) {
      Violation* hit = hits.add(run, one.tensor, worker, "global_norm", spike.peak(), Op::above,
                                spike.threshold());
      if (hit == nullptr) continue;
      hit->with("norm", one.norm)
          .with("share", one.share)
          .with("growth", one.growth)
          .with("median_before", spike.median())
          .with("began_at", Json(spike.began_at().step))
          .with("values_above", Json(spike.length()));
    }
    const Share& largest = series.shares.front();
    hits.say(fmt::format(
        "The norm of all gradients rose to {} at step {} (ordinary is below "
        "{}), {:.0f} % of its square from '{}', and {}.",
        number_text(spike.first()), spike.began_at().step, number_text(spike.threshold()),
        100 * largest.share, run.tensor(largest.tensor), outcome));
  }

  Selection gradients_;
  Selection losses_;
  SpikeOptions options_;
  int64_t lead_steps_;
  std::map<Key, Series> series_;
  RowTable<Norm> last_norms_;
  RowTable<Loss> loss_;
  std::map<uint32_t, Now> workers_;  // of this step
  Severity worst_ = Severity::info;  // of this step
};

constexpr ParameterSpec kParameters[] = {
    kSpikeWindow,
    kSpikeSigmas,
    kSpikeFactor,
    kSpikePatience,
    {.name = "lead_steps",
     .type = ParameterType::integer,
     .default_text = "10",
     .help = "A loss spike that begins at most so many steps after one of the gradients is laid "
             "to it.",
     .range = "[1,]"},
};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "1"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kGradients, kSettings},
                                              {collection_keys::kLosses, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto gradients,
          Selection::create({.what = "gradients",
                             .collections = {std::string(collection_keys::kGradients)},
                             .statistics = {Statistic::l2}},
                            parameters));
  SMD_TRY(auto losses, Selection::create({.what = "losses",
                                          .collections = {std::string(collection_keys::kLosses)},
                                          .statistics = {Statistic::mean},
                                          .is_required = false},
                                         parameters));
  return make_rule<GradientSpike>(std::move(gradients), std::move(losses),
                                  spike_options(parameters), parameters.integer("lead_steps"));
}

}  // namespace

extern const RuleKind gradient_spike;
const RuleKind gradient_spike = {
    .name = "GradientSpike",
    .group = RuleGroup::deep_learning,
    .severity = Severity::warning,
    .summary = "The norm of all gradients has risen suddenly, far above its usual spread.",
    .sees =
        "The norm over all gradients of a worker against the median and the spread of its last "
        "values; fires for every spike as information, and as a warning when a spike of the loss "
        "follows that lasts for patience values. Names the layers with the largest part of it.",
    .why =
        "Without clipping, one such step moves the weights further than hundreds of ordinary "
        "ones and often throws the loss up.",
    .fix =
        "Clip gradients by their global norm, somewhat above the usual value. If the same layer "
        "leads every time, look at its inputs and its initialisation; if single batches do it, "
        "look at these batches.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
