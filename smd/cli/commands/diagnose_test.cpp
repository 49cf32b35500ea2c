#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <pugixml.hpp>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/planted_run.h"
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
  const std::string rules = "--rules=VanishingGradient,ExplodingTensor,LossNotDecreasing";
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

TEST_F(DiagnoseCommand, rules_that_fit_healthy_runs_too_are_hints_unless_asked_for) {
  record();
  run({"diagnose", root});
  EXPECT_THAT(out, HasSubstr("info     VanishingGradient  at step 0"));
  run({"diagnose", root, "--param", "VanishingGradient.threshold=1e-7"});
  EXPECT_THAT(out, HasSubstr("warning  VanishingGradient  at step 0"));
}

TEST_F(DiagnoseCommand, a_healthy_run_is_exit_code_zero) {
  record();
  EXPECT_EQ(run({"diagnose", root, "--rules", "exploding_tensor"}), 0);
  EXPECT_THAT(out, HasSubstr("1 rule evaluated, no issues found\n"));
  EXPECT_EQ(run({"diagnose", rules, root, "--param", "VanishingGradient.threshold=-1"}), 0);
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

TEST_F(DiagnoseCommand, causes_come_first_and_say_what_follows_from_them) {
  PlantedRun planted{.storage = storage::local_storage(root)};
  planted.collections();
  recorded.put(format::collections_file_name("worker_0"),
               R"({"collections": {"gradients": {"include_regex": ["gradient"]}}, )"
               R"("_meta": {"num_workers": 1}})");
  planted.step(0).floats("gradient/a", {1}).floats("x", {1});
  planted.step(1).floats("gradient/a", {0}).floats("x", {NAN});
  planted.end();
  EXPECT_EQ(run({"diagnose", rules, root}), 1);
  EXPECT_LT(out.find("ExplodingTensor"), out.find("VanishingGradient"));
  EXPECT_THAT(out, HasSubstr("  Probably follows from ExplodingTensor.\n"));
  EXPECT_THAT(out, HasSubstr("  Read more: docs/reference/rules/exploding_tensor.md\n"));
}

// Runs side by side: one that is sick, one that is well, and things that are no runs.
class DiagnoseSeveral : public DiagnoseCommand {
 protected:
  void record_all() {
    record();
    PlantedRun planted{.storage = storage::local_storage(well)};
    planted.collections();
    planted.step(0).floats("w", {1});
    planted.end();
    std::filesystem::create_directories(folder + "/code");
    std::ofstream(folder + "/code/train.py") << "pass\n";
  }
  static std::string file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const std::string well = folder + "/well";
};

TEST_F(DiagnoseSeveral, a_table_sums_up_and_what_is_no_run_stops_no_other) {
  record_all();
  EXPECT_EQ(run({"diagnose", rules, folder + "/none", root, folder + "/code", well}), 2);
  EXPECT_THAT(err, HasSubstr("There is no directory '" + folder + "/none'."));
  EXPECT_THAT(err, HasSubstr("looks like a folder of source code"));
  EXPECT_THAT(out, HasSubstr("warning  VanishingGradient"));
  const std::string table = out.substr(out.rfind("\n\n") + 2);
  EXPECT_THAT(table, testing::StartsWith("run "));
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 5);
  EXPECT_THAT(table, testing::ContainsRegex("/none +- +- +cannot be read\n"));
  EXPECT_THAT(table, testing::ContainsRegex("/run +3 +1 +VanishingGradient +step 0 \\(TRAIN 10"));
  EXPECT_THAT(table, testing::ContainsRegex("/well +1 +0 +no issues found\n"));
}

TEST_F(DiagnoseSeveral, a_run_whose_files_vanish_stops_no_other) {
  record_all();
  std::filesystem::remove_all(root + "/events");
  EXPECT_EQ(run({"diagnose", rules, root, well, "--jobs", "1"}), 2);
  EXPECT_THAT(err, testing::ContainsRegex("^smdebug: .*events/"));
  EXPECT_THAT(out, testing::ContainsRegex("/run +- +- +cannot be read\n"));
  EXPECT_THAT(out, testing::ContainsRegex("/well +1 +0 +no issues found\n"));
}

TEST_F(DiagnoseSeveral, unreadable_runs_are_documents_too) {
  record_all();
  EXPECT_EQ(run({"diagnose", rules, folder + "/none", root, "--json", "--fail-on", "never"}), 2);
  const auto first = parse_json(out.substr(0, out.find('\n')), "");
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)["run"], folder + "/none");
  EXPECT_THAT(std::string((*first)["error"]), HasSubstr("There is no directory"));
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 2);
}

TEST_F(DiagnoseSeveral, the_output_does_not_depend_on_the_number_of_jobs) {
  record_all();
  const std::string html = folder + "/report.html";
  std::vector<std::string> seen;
  for (const char* jobs : {"1", "3", "16"}) {
    EXPECT_EQ(run({"diagnose", rules, root, well, folder + "/none", well, root, "--html", html,
                   "--junit", folder + "/report.xml", "--jobs", jobs}),
              2);
    seen.push_back(out + err + file(html) + file(folder + "/report.xml"));
  }
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
  EXPECT_EQ(run({"diagnose", root, "--jobs", "0"}), 2);
}

TEST_F(DiagnoseSeveral, a_junit_report_has_a_case_per_rule_and_run) {
  record_all();
  const std::string path = folder + "/report.xml";
  EXPECT_EQ(run({"diagnose", rules, root, well, folder + "/none", "--junit", path}), 2);
  pugi::xml_document document;
  ASSERT_TRUE(document.load_file(path.c_str()));
  const auto suites = document.select_nodes("/testsuites/testsuite");
  ASSERT_EQ(suites.size(), 3u);
  const auto sick = suites[0].node();
  EXPECT_STREQ(sick.attribute("name").value(), root.c_str());
  EXPECT_EQ(sick.attribute("failures").as_int(), 1);
  const auto cases = sick.select_nodes("testcase");
  EXPECT_EQ(static_cast<size_t>(sick.attribute("tests").as_int()), cases.size());
  EXPECT_EQ(cases.size(), 3u);
  const auto failure = sick.select_node("testcase[@name='VanishingGradient']/failure").node();
  EXPECT_STREQ(failure.attribute("type").value(), "warning");
  EXPECT_THAT(failure.text().get(), HasSubstr("what to do: "));
  EXPECT_TRUE(sick.select_node("testcase[@name='LossNotDecreasing']/skipped"));
  EXPECT_EQ(suites[1].node().attribute("failures").as_int(), 0);
  EXPECT_TRUE(suites[2].node().select_node("testcase/error"));
  EXPECT_EQ(document.child("testsuites").attribute("errors").as_int(), 1);
  // What is accepted is told, but is no failure.
  EXPECT_EQ(run({"diagnose", rules, root, "--junit", path, "--fail-on", "error"}), 0);
  ASSERT_TRUE(document.load_file(path.c_str()));
  EXPECT_EQ(document.child("testsuites").attribute("failures").as_int(), 0);
  EXPECT_TRUE(document.select_node("//testcase[@name='VanishingGradient']/system-out"));
}

TEST_F(DiagnoseSeveral, a_page_has_plots_and_ranked_cards) {
  record_all();
  const std::string path = folder + "/report.html";
  EXPECT_EQ(run({"diagnose", rules, root, "--html", path}), 1);
  pugi::xml_document document;
  const auto parsed = document.load_file(path.c_str());
  ASSERT_TRUE(parsed) << parsed.description();
  const auto card = document.select_node("//article[@class='card warning']").node();
  ASSERT_TRUE(card);
  EXPECT_THAT(card.child("h3").text().get(), HasSubstr("1. VanishingGradient"));
  EXPECT_TRUE(card.select_node("svg//path[@class='threshold']"));
  EXPECT_TRUE(card.select_node("svg//path[@class='mark']"));
  EXPECT_STREQ(card.select_node("svg/title").node().text().get(), "bias (abs_mean)");
  EXPECT_FALSE(document.select_node("//script | //link | //img | //iframe"));
  const std::string page = file(path);
  EXPECT_THAT(page, Not(HasSubstr("src=")));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_EQ(run({"diagnose", rules, well, "--html", path}), 0);
  EXPECT_LT(file(path).size(), page.size());
  EXPECT_THAT(file(path), HasSubstr("no issues found"));
}

TEST_F(DiagnoseSeveral, a_file_that_cannot_be_written_is_exit_code_two) {
  record_all();
  EXPECT_EQ(run({"diagnose", rules, well, "--html", folder}), 2);
  EXPECT_THAT(err, HasSubstr("as it is a directory"));
}

TEST_F(DiagnoseSeveral, findings_are_saved_when_asked_for) {
  record_all();
  EXPECT_EQ(run({"diagnose", rules, root}), 1);
  EXPECT_FALSE(std::filesystem::exists(root + "/findings"));
  EXPECT_EQ(run({"diagnose", rules, root, "--save"}), 1);
  EXPECT_THAT(file(root + "/findings/diagnose.jsonl"), HasSubstr(R"("rule": "VanishingGradient")"));
  EXPECT_EQ(run({"verify", root}), 0) << out << err;
}

TEST_F(DiagnoseCommand, lines_fit_a_terminal) {
  record();
  is_terminal = true;
  width = 60;
  // All it has are hints.
  EXPECT_EQ(run({"diagnose", root, "--color", "never"}), 0);
  EXPECT_THAT(out, HasSubstr("\ninfo     PoorWeightInitialization\n  3 times, first at step 0"));
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
