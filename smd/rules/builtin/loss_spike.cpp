#include <fmt/format.h>

#include <algorithm>

#include "smd/collection/builtin.h"
#include "smd/rules/number_text.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"
#include "smd/rules/spike.h"

namespace smd::rules::builtin {
namespace {

class LossSpike final : public Rule {
 public:
  LossSpike(Selection losses, const SpikeOptions& options)
      : losses_(std::move(losses)), options_(options) {}

  std::vector<Selection*> selections() override { return {&losses_}; }

  Status observe(const StepView& step, Hits& hits) override {
    worst_ = Severity::info;
    // A loss of evaluation that rises is overfitting.
    if (step.info().mode == Mode::eval) return {};
    losses_.for_each(step, [&](const TensorRow& row) {
      Series& series = series_.of(row, step.info().mode);
      if (!series.is_known) series = {.is_known = true, .spike = Spike(options_)};
      Spike& spike = series.spike;
      const Spike::Event event = spike.add(step.number(row, Statistic::mean), step.info());
      if (event == Spike::Event::began) series.began_secs = step.wall_secs();
      if (event == Spike::Event::alarm) {
        report(step.run(), row.tensor, row.worker, series,
               fmt::format("has stayed there for {} values", spike.length()), "open",
               Severity::warning, hits);
      } else if (event == Spike::Event::settled) {
        report(step.run(), row.tensor, row.worker, series,
               fmt::format("has not come back in {} values", spike.length()), "not recovered",
               Severity::warning, hits);
      } else if (event == Spike::Event::ended && spike.length() < options_.patience) {
        hits.set_step(spike.began_at(), series.began_secs);
        report(step.run(), row.tensor, row.worker, series,
               fmt::format("came back after {} value{}", spike.length(),
                           spike.length() == 1 ? "" : "s"),
               "fast recovery", Severity::info, hits);
      } else if (event == Spike::Event::ended) {
        report(step.run(), row.tensor, row.worker, series,
               fmt::format("came back after {} values", spike.length()), "slow recovery",
               Severity::info, hits);
      }
    });
    return {};
  }

  Status finish(const RunView& run, Hits& hits) override {
    worst_ = Severity::info;
    series_.for_each([&](uint32_t tensor, uint32_t worker, Series& series) {
      if (!series.is_known || !series.spike.is_open()) return;
      const bool is_long = series.spike.length() >= options_.patience;
      report(run, tensor, worker, series, "had not come back when the run ended",
             is_long ? "not recovered" : "open", is_long ? Severity::warning : Severity::info,
             hits);
    });
    return {};
  }

 private:
  struct Series {
    bool is_known = false;
    Spike spike{};
    double began_secs = 0;
  };

  void report(const RunView& run, uint32_t tensor, uint32_t worker, const Series& series,
              const std::string& outcome, std::string_view recovery, Severity severity,
              Hits& hits) {
    const Spike& spike = series.spike;
    worst_ = std::max(worst_, severity);
    hits.set_severity(worst_);
    Violation* hit =
        hits.add(run, tensor, worker, "loss", spike.peak(), Op::above, spike.threshold());
    if (hit == nullptr) return;
    hit->with("median_before", spike.median())
        .with("first_loss", spike.first())
        .with("began_at", Json(spike.began_at().step))
        .with("values_above", Json(spike.length()))
        .with("recovery", Json(recovery));
    hits.say(fmt::format("'{}' rose to {} at step {} (ordinary is below {}) and {}.",
                         run.tensor(tensor), number_text(spike.first()), spike.began_at().step,
                         number_text(spike.threshold()), outcome));
  }

  Selection losses_;
  SpikeOptions options_;
  RowTable<Series> series_;
  Severity worst_ = Severity::info;  // of this step
};

constexpr ParameterSpec kParameters[] = {kCollectionNames, kTensorRegex, kSpikeWindow,
                                         kSpikeSigmas,     kSpikeFactor, kSpikePatience};

constexpr CollectionRequest::Setting kSettings[] = {{"save_interval", "1"}};
constexpr CollectionRequest kCollections[] = {{collection_keys::kLosses, kSettings}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  SMD_TRY(auto losses, select_series(parameters, "losses", collection_keys::kLosses));
  return make_rule<LossSpike>(std::move(losses), spike_options(parameters));
}

}  // namespace

extern const RuleKind loss_spike;
const RuleKind loss_spike = {
    .name = "LossSpike",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "The loss has risen suddenly, far above its usual spread.",
    .sees =
        "Each loss of the training against the median and the spread of its last values; fires for "
        "every spike, as information when it is over soon, and as a warning when it lasts for "
        "patience values.",
    .why =
        "A spike that does not go away means that an update has thrown the model out of the "
        "region it had learned; the steps since then are lost, and later ones may be, too.",
    .fix =
        "Look at the batch and the gradient norm of the step at which it began. If it came back "
        "by itself, nothing has to be done. If not, go back to a checkpoint from before it and "
        "clip gradients, lower the learning rate or leave out that batch.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
