#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>

#include "smd/collection/builtin.h"
#include "smd/rules/quantile.h"
#include "smd/rules/row_table.h"
#include "smd/rules/rule_kind.h"

namespace smd::rules::builtin {
namespace {

struct Options {
  std::optional<int64_t> classes;  // nullopt: from the shape of the logits
  double share = 0.95;
  int64_t window = 50;
  int64_t patience = 1000;
};

struct Series {
  std::deque<double> last;
  int64_t points = 0;
  int64_t finite = 0;
  bool is_told = false;
};

// A short run is judged at its end, if it has so many windows.
constexpr int64_t kLeastWindows = 2;

class LossAtChance final : public Rule {
 public:
  LossAtChance(Selection losses, Selection logits, const Options& options)
      : losses_(std::move(losses)), logits_(std::move(logits)), options_(options) {}

  std::vector<Selection*> selections() override { return {&losses_, &logits_}; }

  Status observe(const StepView& step, Hits& hits) override {
    if (step.info().mode == Mode::eval || step.info().mode == Mode::predict) return {};
    if (!options_.classes) SMD_RETURN_IF_ERROR(read_classes(step));
    losses_.for_each(step, [&](const TensorRow& row) {
      Series& series = series_.of(row);
      ++series.points;
      const double loss = step.number(row, Statistic::mean);
      if (!std::isfinite(loss)) return;
      series.last.push_back(loss);
      if (static_cast<int64_t>(series.last.size()) > options_.window) series.last.pop_front();
      if (series.points >= options_.patience) {
        judge(step.run(), row.tensor, row.worker, series, hits);
      }
    });
    return {};
  }

  Status finish(const RunView& run, Hits& hits) override {
    series_.for_each([&](uint32_t tensor, uint32_t worker, Series& series) {
      if (series.points >= kLeastWindows * options_.window) {
        judge(run, tensor, worker, series, hits);
      }
    });
    return {};
  }

 private:
  void judge(const RunView& run, uint32_t tensor, uint32_t worker, Series& series, Hits& hits) {
    if (series.is_told || !options_.classes) return;
    if (static_cast<int64_t>(series.last.size()) < options_.window) return;
    std::vector<double> sorted(series.last.begin(), series.last.end());
    const double median = quantile(sorted, 0.5);
    const double chance = std::log(static_cast<double>(*options_.classes));
    if (!(median > options_.share * chance)) return;
    series.is_told = true;
    Violation* hit =
        hits.add(run, tensor, worker, "median_loss", median, Op::above, options_.share * chance);
    if (hit != nullptr) hit->with("chance", chance).with("classes", Json(*options_.classes));
    hits.say(
        fmt::format("After {} steps '{}' is still {:.4g}; guessing among {} classes gives "
                    "{:.4g}.",
                    series.points, run.tensor(tensor), median, *options_.classes, chance));
  }

  Status read_classes(const StepView& step) {
    return logits_.for_each(step, [&](const TensorRow& row) -> Status {
      const Shape* shape = row.shape;
      if (shape == nullptr && row.has_value) {
        SMD_TRY(const TensorValue* value, step.value(row));
        shape = &value->shape;
      }
      // Samples, classes, and whatever follows.
      if (options_.classes || shape == nullptr || shape->size() < 2 || (*shape)[1] < 2) return {};
      options_.classes = (*shape)[1];
      return {};
    });
  }

  Selection losses_;
  Selection logits_;
  Options options_;
  RowTable<Series> series_;
};

constexpr ParameterSpec kParameters[] = {
    kCollectionNames,
    kTensorRegex,
    {.name = "num_classes",
     .type = ParameterType::integer,
     .default_text = "",
     .help = "Number of classes, where it does not follow from the inputs of the loss.",
     .range = "[2,]"},
    {.name = "share",
     .type = ParameterType::real,
     .default_text = "0.95",
     .help = "Of the loss of a model that guesses; above it nothing was learned.",
     .range = "(0,]"},
    {.name = "window",
     .type = ParameterType::integer,
     .default_text = "50",
     .help = "How many of the last losses are looked at.",
     .range = "[5,]"},
    {.name = "patience",
     .type = ParameterType::integer,
     .default_text = "1000",
     .help = "After so many losses something must have been learned; shorter runs are judged at "
             "their end.",
     .range = "[1,]"},
    {.name = "logits_regex",
     .type = ParameterType::list,
     .default_text = "(?i)(cross_?entropy|nll)[a-z]*_input_0$",
     .help = "Inputs of the loss function, whose second dimension is the number of classes."},
};

constexpr CollectionRequest kCollections[] = {{collection_keys::kLosses}};

Result<std::unique_ptr<Rule>> create(const Parameters& parameters, const RuleContext&) {
  Options options{.share = parameters.real("share"),
                  .window = parameters.integer("window"),
                  .patience = parameters.integer("patience")};
  if (parameters.has("num_classes")) options.classes = parameters.integer("num_classes");
  SMD_TRY(auto losses, select_series(parameters, "losses", collection_keys::kLosses));
  SMD_TRY(auto logits, Selection::create({.what = "inputs of the loss function, or num_classes",
                                          .patterns = parameters.list("logits_regex"),
                                          .is_required = !options.classes},
                                         parameters));
  return make_rule<LossAtChance>(std::move(losses), std::move(logits), options);
}

}  // namespace

extern const RuleKind loss_at_chance;
const RuleKind loss_at_chance = {
    .name = "LossAtChance",
    .group = RuleGroup::any_framework,
    .severity = Severity::warning,
    .summary = "After many steps the classifier is no better than guessing.",
    .sees =
        "The median of the last training losses against the cross-entropy of a guess, the "
        "logarithm of the number of classes; fires once after patience steps, or at the end of a "
        "shorter run.",
    .why =
        "A loss that is flat on a low level has converged. One that is flat where it began has "
        "learned nothing: labels that do not belong to their samples, a model without signal, "
        "updates that do not arrive.",
    .fix =
        "Look at some samples with their labels as the model gets them. Try to overfit a single "
        "batch: if that fails, too, look at gradients and updates; if it works, at the data.",
    .parameters = kParameters,
    .collections = kCollections,
    .create = create,
};

}  // namespace smd::rules::builtin
