#include "smd/rules/ranking.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>

namespace smd::rules {
namespace {

using testing::ElementsAre;

class Ranking : public testing::Test {
 protected:
  // A finding about a tensor; without a name, about the run.
  void add(std::string_view rule, Step first_step, Severity severity = Severity::warning,
           std::string tensor = "layer") {
    kinds_.push_back({.name = rule, .severity = severity});
    Finding finding{
        .kind = &kinds_.back(), .severity = severity, .first_step = {.step = first_step}};
    if (!tensor.empty()) finding.tensors.push_back({.tensor = std::move(tensor)});
    findings.push_back(std::move(finding));
  }
  std::vector<std::string> ranked() {
    rank(findings);
    std::vector<std::string> out;
    for (const Finding& finding : findings) out.emplace_back(finding.kind->name);
    return out;
  }
  std::vector<std::string> explanations() const {
    std::vector<std::string> out;
    for (const Finding& finding : findings) out.push_back(finding.explained_by);
    return out;
  }

  std::vector<Finding> findings;
  std::deque<RuleKind> kinds_;
};

TEST_F(Ranking, what_is_not_finite_explains_everything_after_it) {
  add("LossNotDecreasing", 110);
  add("VanishingGradient", 105);
  add("DeadRelu", 100);
  add("ExplodingTensor", 100);
  EXPECT_THAT(ranked(),
              ElementsAre("ExplodingTensor", "DeadRelu", "VanishingGradient", "LossNotDecreasing"));
  EXPECT_THAT(explanations(),
              ElementsAre("", "ExplodingTensor", "ExplodingTensor", "ExplodingTensor"));
}

TEST_F(Ranking, nothing_explains_what_came_before_it) {
  add("ExplodingTensor", 200);
  add("DeadRelu", 60);
  add("VanishingGradient", 61);
  EXPECT_THAT(ranked(), ElementsAre("DeadRelu", "VanishingGradient", "ExplodingTensor"));
  EXPECT_THAT(explanations(), ElementsAre("", "DeadRelu", ""));
}

TEST_F(Ranking, a_dead_layer_comes_before_small_gradients_and_a_flat_loss) {
  add("VanishingGradient", 60);
  add("LossNotDecreasing", 70);
  add("SaturatedActivation", 60);
  EXPECT_THAT(ranked(),
              ElementsAre("SaturatedActivation", "VanishingGradient", "LossNotDecreasing"));
}

TEST_F(Ranking, the_origin_of_nan_comes_before_its_spread) {
  add("ExplodingTensor", 100, Severity::error);
  add("NonFiniteOrigin", 100, Severity::error);
  EXPECT_THAT(ranked(), ElementsAre("NonFiniteOrigin", "ExplodingTensor"));
}

TEST_F(Ranking, a_less_severe_finding_explains_nothing) {
  add("PoorWeightInitialization", 0);
  add("ExplodingTensor", 100, Severity::error);
  add("LossNotDecreasing", 100);
  EXPECT_THAT(ranked(),
              ElementsAre("ExplodingTensor", "PoorWeightInitialization", "LossNotDecreasing"));
  EXPECT_THAT(explanations(), ElementsAre("", "", "ExplodingTensor"));
}

TEST_F(Ranking, what_was_given_explains_what_was_seen_earlier) {
  add("DeadUnits", 0);
  add("WeightsNotUpdated", 5);
  add("LearningRate", 300);
  EXPECT_THAT(ranked(), ElementsAre("LearningRate", "DeadUnits", "WeightsNotUpdated"));
  EXPECT_THAT(explanations(), ElementsAre("", "LearningRate", "LearningRate"));
}

TEST_F(Ranking, of_what_was_given_the_table_decides) {
  add("ActivationScale", 0);
  add("InputRange", 2);
  EXPECT_THAT(ranked(), ElementsAre("InputRange", "ActivationScale"));
}

TEST_F(Ranking, hints_come_last_and_explain_nothing) {
  add("PoorWeightInitialization", 0, Severity::info);
  kinds_.back().is_hint_unasked = true;
  add("LossSpike", 5, Severity::info);
  EXPECT_THAT(ranked(), ElementsAre("LossSpike", "PoorWeightInitialization"));
  EXPECT_EQ(findings[0].explained_by, "");
  // Asked for, it counts like any other.
  findings[1].severity = findings[0].severity = Severity::warning;
  EXPECT_THAT(ranked(), ElementsAre("PoorWeightInitialization", "LossSpike"));
}

TEST_F(Ranking, tensors_come_before_symptoms_of_the_run) {
  add("LossNotDecreasing", 50);
  add("WeightUpdateRatio", 55);
  add("StalledTrainingRule", 10, Severity::warning, "");
  EXPECT_THAT(ranked(),
              ElementsAre("WeightUpdateRatio", "StalledTrainingRule", "LossNotDecreasing"));
  EXPECT_THAT(explanations(), ElementsAre("", "", ""));
}

TEST_F(Ranking, causes_come_first_even_through_a_third_finding) {
  add("Overfit", 30, Severity::info);
  add("DeadRelu", 10, Severity::info);
  add("LossNotDecreasing", 40, Severity::warning);
  add("CheckInputImages", 0, Severity::warning);
  EXPECT_THAT(ranked(),
              ElementsAre("CheckInputImages", "LossNotDecreasing", "DeadRelu", "Overfit"));
}

TEST_F(Ranking, rules_that_the_table_does_not_know_stand_by_severity_and_step) {
  add("MyRule", 5);
  add("OtherRule", 3);
  add("DeadRelu", 4);
  add("Third", 9, Severity::error);
  EXPECT_THAT(ranked(), ElementsAre("Third", "OtherRule", "DeadRelu", "MyRule"));
}

TEST_F(Ranking, the_order_does_not_depend_on_the_order_before) {
  const std::vector<std::string> rules = {"ExplodingTensor", "DeadRelu", "VanishingGradient",
                                          "LossNotDecreasing", "CheckInputImages"};
  std::set<std::vector<std::string>> seen;
  for (size_t shift = 0; shift < rules.size(); ++shift) {
    findings.clear();
    for (size_t i = 0; i < rules.size(); ++i) {
      add(rules[(i + shift) % rules.size()], 7);
    }
    seen.insert(ranked());
  }
  EXPECT_EQ(seen.size(), 1u);
}

TEST_F(Ranking, the_table_names_each_rule_once_in_the_order_of_the_stages) {
  std::set<std::string_view> seen;
  CauseStage last = CauseStage::given;
  for (const CauseRow& row : cause_table()) {
    EXPECT_TRUE(seen.insert(row.rule).second) << row.rule;
    EXPECT_GE(row.stage, last) << row.rule;
    EXPECT_TRUE(row.reason.ends_with('.')) << row.rule;
    last = row.stage;
  }
}

TEST_F(Ranking, every_built_in_rule_has_its_place) {
  for (const RuleKind* kind : rule_kinds()) {
    EXPECT_TRUE(cause_stage(kind->name).has_value()) << kind->name;
  }
}

}  // namespace
}  // namespace smd::rules
