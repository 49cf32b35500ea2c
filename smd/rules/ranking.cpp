#include "smd/rules/ranking.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace smd::rules {
namespace {

using enum CauseStage;

constexpr CauseRow kTable[] = {
    {"InputRange", given, "Data goes in before anything is computed."},
    {"CheckInputImages", given, "Data goes in before anything is computed."},
    {"NLPSequenceRatio", given, "Data goes in before anything is computed."},
    {"SwappedClasses", given, "Labels are given before anything is learned."},
    {"LabelBalance", given, "Labels are given before anything is learned."},
    {"ClassImbalance", given, "Labels are given before anything is learned."},
    {"OutputRange", given,
     "A loss function that does not fit the outputs makes every gradient wrong."},
    {"NegativeLoss", given,
     "A loss function that does not fit the task makes every gradient wrong."},
    {"IdenticalUnits", given, "Initial weights are there before the first step."},
    {"ActivationScale", given, "Initial weights are there before the first step."},
    {"PoorWeightInitialization", given, "Initial weights are there before the first step."},
    {"LearningRate", given, "Too large a rate ends in infinity, too small a one in nothing."},
    {"AdamDenominators", given, "Epsilon is set before the first step."},
    {"GradientNotReset", loop, "An update of all batches so far is none of this one."},
    {"RankDivergence", loop, "Ranks that hold other weights train another model each."},
    {"GradientSynchronization", loop, "Ranks that do not share gradients drift apart."},
    {"WeightsNotUpdated", loop, "A weight that the optimizer does not hold cannot move."},
    {"ResumeContinuity", loop, "An optimizer without its past moves weights otherwise."},
    {"InitialLoss", growth,
     "A first loss that is too high follows from inputs, weights or the head."},
    {"OverflowHeadroom", growth, "A number near the end of its type comes before infinity."},
    {"GrowthDivergence", growth, "Weights that grow without end come before infinity."},
    {"LossScaleCollapse", growth, "A scale falls while scaled gradients do not fit their type."},
    {"NonFiniteOrigin", nonfinite, "Names the tensor in which the first NaN arose."},
    {"ExplodingTensor", nonfinite, "NaN and infinity reach all that is computed from them."},
    {"AttentionEntropyCollapse", layer, "A softmax that is a hard choice passes no gradient."},
    {"DeadUnits", layer, "A layer of zeros passes no gradient to those before it."},
    {"DeadRelu", layer, "A layer of zeros passes no gradient to those before it."},
    {"SaturatedActivation", layer, "A flat activation passes almost no gradient."},
    {"AllZero", layer, "What is zero passes nothing on."},
    {"LayerStopped", gradient, "A layer without gradient stays as it is."},
    {"MostlyZeroGradients", gradient, "Zero gradients are what dead units leave."},
    {"VanishingGradient", gradient, "Small gradients are why weights stand still."},
    {"RelativeVanishingGradient", gradient, "Small gradients are why weights stand still."},
    {"GradientSpike", gradient, "A large gradient moves the weights, and then the loss jumps."},
    {"LostUpdates", update, "Weights stand still because their type cannot hold the change."},
    {"WeightCollapse", update, "Weights move by the gradient, the rate and the decay."},
    {"UnchangedTensor", update, "Weights stand still because their gradient or rate is small."},
    {"WeightUpdateRatio", update, "Weights move by the gradient and the rate."},
    {"UpdateSize", update, "Weights move by the gradient and the rate."},
    {"TensorVariance", update, "The spread of a tensor follows from how it was moved."},
    {"FeatureImportanceOverweight", update, "Trees lean on a feature because of the data."},
    {"TreeDepth", update, "Trees grow as the data lets them."},
    {"LossSpike", outcome, "The loss is computed last."},
    {"LossAtChance", outcome, "A flat loss is an effect of whatever stopped learning."},
    {"LossNotDecreasing", outcome, "A flat loss is an effect of whatever stopped learning."},
    {"PersistentHighLoss", outcome, "The loss is computed last."},
    {"Confusion", outcome, "Metrics are computed from what was learned."},
    {"GeneralizationGap", outcome, "Metrics are computed from what was learned."},
    {"Overfit", outcome, "Metrics are computed from what was learned."},
    {"Overtraining", outcome, "Metrics are computed from what was learned."},
    {"SimilarAcrossRuns", outcome, "Two runs are alike for reasons that other rules name."},
    {"TrainingPause", outcome, "A job stands still after whatever broke it."},
    {"StalledTrainingRule", outcome, "A job stands still after whatever broke it."},
    {"CreateXgboostReport", outcome, "A report comes after all that it is about."},
};

size_t row_of(std::string_view rule) {
  return static_cast<size_t>(std::ranges::find(kTable, rule, &CauseRow::rule) - std::begin(kTable));
}

bool is_local(const Finding& finding) {
  return !finding.tensors.empty() && cause_stage(finding.kind->name) != outcome;
}

// Of a rule that also speaks of healthy runs, and was not asked for.
bool is_hint(const Finding& finding) {
  return finding.kind->is_hint_unasked && finding.severity == Severity::info;
}

bool is_given(const Finding& finding) { return cause_stage(finding.kind->name) == given; }

bool comes_first(const Finding& a, const Finding& b) {
  const auto key = [](const Finding& f) {
    return std::tuple(-static_cast<int>(f.severity), is_hint(f), !is_local(f),
                      is_given(f) ? Step{-1} : f.first_step.step, row_of(f.kind->name),
                      f.kind->name);
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
  return cause && effect && *cause < *effect && !is_hint(a) &&
         (is_given(a) || a.first_step.step <= b.first_step.step) && a.severity >= b.severity;
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
