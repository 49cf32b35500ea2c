#include "smd/rules/ranking.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace smd::rules {
namespace {

using enum CauseStage;

constexpr CauseRow kTable[] = {
    {"RankDivergence", setup, "Ranks that hold other weights train another model each."},
    {"GradientSynchronization", setup, "Ranks that do not share gradients drift apart."},
    {"WeightsNotUpdated", setup, "A weight that the optimizer does not hold cannot move."},
    {"CheckInputImages", setup, "Data goes in before anything is computed."},
    {"NLPSequenceRatio", setup, "Data goes in before anything is computed."},
    {"ClassImbalance", setup, "Labels are given before anything is learned."},
    {"PoorWeightInitialization", setup, "Initial weights are there before the first step."},
    {"LearningRate", setup, "Too large a rate ends in infinity, too small a one in nothing."},
    {"NegativeLoss", setup,
     "A loss function that does not fit the task makes every gradient wrong."},
    {"InitialLoss", setup, "A wrong head or loss shows before anything is learned."},
    {"OverflowHeadroom", growth, "A number near the end of its type comes before infinity."},
    {"GrowthDivergence", growth, "Weights that grow without end come before infinity."},
    {"LossScaleCollapse", growth, "A scale falls while scaled gradients do not fit their type."},
    {"NonFiniteOrigin", nonfinite, "Names the tensor in which the first NaN arose."},
    {"ExplodingTensor", nonfinite, "NaN and infinity reach all that is computed from them."},
    {"DeadRelu", layer, "A layer of zeros passes no gradient to those before it."},
    {"SaturatedActivation", layer, "A flat activation passes almost no gradient."},
    {"AllZero", layer, "What is zero passes nothing on."},
    {"MostlyZeroGradients", gradient, "Zero gradients are what dead units leave."},
    {"VanishingGradient", gradient, "Small gradients are why weights stand still."},
    {"RelativeVanishingGradient", gradient, "Small gradients are why weights stand still."},
    {"GradientSpike", gradient, "A large gradient moves the weights, and then the loss jumps."},
    {"UnchangedTensor", update, "Weights stand still because their gradient or rate is small."},
    {"WeightUpdateRatio", update, "Weights move by the gradient and the rate."},
    {"UpdateSize", update, "Weights move by the gradient and the rate."},
    {"TensorVariance", update, "The spread of a tensor follows from how it was moved."},
    {"FeatureImportanceOverweight", update, "Trees lean on a feature because of the data."},
    {"TreeDepth", update, "Trees grow as the data lets them."},
    {"LossSpike", outcome, "The loss is computed last."},
    {"LossNotDecreasing", outcome, "A flat loss is an effect of whatever stopped learning."},
    {"PersistentHighLoss", outcome, "The loss is computed last."},
    {"Confusion", outcome, "Metrics are computed from what was learned."},
    {"Overfit", outcome, "Metrics are computed from what was learned."},
    {"Overtraining", outcome, "Metrics are computed from what was learned."},
    {"SimilarAcrossRuns", outcome, "Two runs are alike for reasons that other rules name."},
    {"StalledTrainingRule", outcome, "A job stands still after whatever broke it."},
    {"CreateXgboostReport", outcome, "A report comes after all that it is about."},
};

size_t row_of(std::string_view rule) {
  return static_cast<size_t>(std::ranges::find(kTable, rule, &CauseRow::rule) - std::begin(kTable));
}

bool is_local(const Finding& finding) {
  return !finding.tensors.empty() && cause_stage(finding.kind->name) != outcome;
}

bool comes_first(const Finding& a, const Finding& b) {
  const auto key = [](const Finding& f) {
    return std::tuple(-static_cast<int>(f.severity), !is_local(f), f.first_step.step,
                      row_of(f.kind->name), f.kind->name);
  };
  return key(a) < key(b);
}

}  // namespace

std::span<const CauseRow> cause_table() { return kTable; }

std::optional<CauseStage> cause_stage(std::string_view rule) {
  const size_t row = row_of(rule);
  if (row == std::size(kTable)) return std::nullopt;
  return kTable[row].stage;
}

bool explains(const Finding& a, const Finding& b) {
  const auto cause = cause_stage(a.kind->name);
  const auto effect = cause_stage(b.kind->name);
  return cause && effect && *cause < *effect && a.first_step.step <= b.first_step.step &&
         a.severity >= b.severity;
}

void rank(std::vector<Finding>& findings) {
  std::ranges::stable_sort(findings, comes_first);
  // The first of the rest that nothing of the rest explains; stages grow along explanations, so
  // there always is one.
  for (size_t place = 0; place < findings.size(); ++place) {
    const auto rest = findings.begin() + static_cast<std::ptrdiff_t>(place);
    const auto next = std::find_if(rest, findings.end(), [&](const Finding& candidate) {
      return std::none_of(rest, findings.end(),
                          [&](const Finding& other) { return explains(other, candidate); });
    });
    std::rotate(rest, next, next + 1);
    const auto cause = std::find_if(findings.begin(), rest,
                                    [&](const Finding& one) { return explains(one, *rest); });
    rest->explained_by = cause == rest ? "" : std::string(cause->kind->name);
  }
}

}  // namespace smd::rules
