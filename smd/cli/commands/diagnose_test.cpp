#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/small_run.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// Those whose findings the tests know.
const std::string kRules = "VanishingGradient,ExplodingTensor,LossNotDecreasing";

// Tensors are constant over each step, so the first one is zero.
class DiagnoseCommand : public ProgramTestCase {
 protected:
  const std::string root = folder + "/run";
  SmallRun recorded{storage::local_storage(root)};

  void record() {
    recorded.finished();
    recorded.put("collections/000000000/worker_0_collections.json",
                 R"({"collections": {"gradients": {"include_regex": ["bias"]}}, )"
                 R"("_meta": {"num_workers": 1}})");
  }
};

TEST_F(DiagnoseCommand, findings_are_told_in_words_and_by_exit_code) {
  record();
  EXPECT_EQ(run({"diagnose", root, "--rules", kRules}), 1);
  EXPECT_THAT(out, HasSubstr("3 steps, 2 rules evaluated, 1 finding\n"));
  EXPECT_THAT(out, HasSubstr("warning  VanishingGradient  at step 0 (TRAIN 10)\n"));
  EXPECT_THAT(out, HasSubstr("abs_mean of 'bias' is 0, below 1e-07."));
  EXPECT_THAT(out, HasSubstr("What to do: "));
  EXPECT_THAT(out, HasSubstr("LossNotDecreasing not evaluated: It needs losses"));
  EXPECT_EQ(run({"diagnose", root, "--fail-on", "error"}), 0);
  EXPECT_EQ(run({"diagnose", root, "--fail-on", "never"}), 0);
  EXPECT_EQ(run({"diagnose", root, "--fail-on", "info"}), 1);
}

TEST_F(DiagnoseCommand, a_healthy_run_is_exit_code_zero) {
  record();
  EXPECT_EQ(run({"diagnose", root, "--rules", "exploding_tensor"}), 0);
  EXPECT_THAT(out, HasSubstr("1 rule evaluated, no issues found\n"));
  EXPECT_EQ(run({"diagnose", root, "--param", "VanishingGradient.threshold=-1"}), 0);
}

TEST_F(DiagnoseCommand, json_has_one_document_per_run) {
  record();
  EXPECT_EQ(run({"diagnose", root, root, "--json", "--rules", kRules}), 1);
  const auto first = parse_json(out.substr(0, out.find('\n')), "");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)["findings"][0]["rule"], "VanishingGradient");
  EXPECT_EQ((*first)["findings"][0]["evidence"]["violations"][0]["value"], 0.0);
  const Json& others = (*first)["not_evaluated"];
  EXPECT_TRUE(std::ranges::any_of(
      others, [](const Json& note) { return note["rule"] == "LossNotDecreasing"; }));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2);
}

TEST_F(DiagnoseCommand, rules_without_data_say_what_they_need) {
  record();
  run({"diagnose", root});
  for (const char* note : {
           "Overfit not evaluated: It needs losses (collection 'losses')",
           "Overtraining not evaluated: It needs losses",
           "StalledTrainingRule not evaluated: It watches the clock",
           "ClassImbalance not evaluated: It needs labels",
           "Confusion not evaluated: It needs labels",
           "NLPSequenceRatio not evaluated: It needs token ids",
           "CheckInputImages not evaluated: It needs images",
           "FeatureImportanceOverweight not evaluated: It needs importances of features",
           "TreeDepth not evaluated: It needs nodes of trees",
           "CreateXgboostReport not evaluated: It writes files",
       }) {
    EXPECT_THAT(out, HasSubstr(note));
  }
  EXPECT_EQ(run({"diagnose", root, "--rules", "CreateXgboostReport"}), 0);
  EXPECT_THAT(out, HasSubstr("CreateXgboostReport not evaluated: It needs metrics of boosted"));
}

TEST_F(DiagnoseCommand, wrong_rules_and_parameters_are_exit_code_two) {
  record();
  EXPECT_EQ(run({"diagnose", root, "--rules", "VanishGradient"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'VanishingGradient'?"));
  EXPECT_EQ(run({"diagnose", root, "--param", "threshold=1"}), 2);
  EXPECT_THAT(err, HasSubstr("RULE.NAME=VALUE"));
  EXPECT_EQ(run({"diagnose", root, "--param", "VanishingGradient.treshold=1"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'threshold'?"));
  EXPECT_EQ(run({"diagnose", root, "--rules", "ExplodingTensor", "--param",
                 "VanishingGradient.threshold=1"}),
            2);
  EXPECT_THAT(err, HasSubstr("not one of the chosen rules"));
  EXPECT_EQ(run({"diagnose", folder + "/nothing"}), 2);
}

TEST_F(DiagnoseCommand, lines_fit_a_terminal) {
  record();
  is_terminal = true;
  width = 60;
  EXPECT_EQ(run({"diagnose", root, "--color", "never"}), 1);
  std::string_view rest = out;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    if (line.find(root) == std::string_view::npos) {
      EXPECT_LE(line.size(), 60u) << line;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  EXPECT_THAT(out, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace smd::cli
