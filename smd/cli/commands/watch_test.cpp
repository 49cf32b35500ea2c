#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/planted_run.h"

namespace smd::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

class WatchCommand : public ProgramTestCase {
 protected:
  WatchCommand() { planted.storage = storage::local_storage(root); }

  void step(Step number, float x) { planted.step(number).floats("x", {x}).floats("y", {1}); }
  std::vector<Json> documents(std::string_view text) {
    std::vector<Json> found;
    for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      const auto parsed = parse_json(std::string(text.substr(0, end)), "");
      EXPECT_TRUE(parsed.ok()) << text;
      if (parsed.ok()) found.push_back(*parsed);
      text.remove_prefix(end + 1);
    }
    return found;
  }
  // The one file of findings.
  std::string saved() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(root + "/findings")) {
      files.push_back(entry.path());
    }
    EXPECT_EQ(files.size(), 1u);
    std::ifstream in(files.at(0), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const std::string root = folder + "/run";
  PlantedRun planted;
};

TEST_F(WatchCommand, a_run_that_does_not_exist_yet_is_watched_to_its_end) {
  std::thread training([&] {
    planted.collections();
    step(0, 1);
    step(1, NAN);
    step(2, NAN);
    planted.end();
  });
  const int code = run(
      {"watch", root, "--interval", "0.05", "--on-fire", "continue", "--rules", "ExplodingTensor"});
  training.join();
  EXPECT_EQ(code, 1) << err;
  EXPECT_THAT(out,
              testing::StartsWith("step 1 (TRAIN 1)  error    ExplodingTensor  'x' holds NaN.\n" +
                                  root + ": 3 steps"));
  EXPECT_THAT(out, HasSubstr("error    ExplodingTensor  2 times, first at step 1 (TRAIN 1)"));
  const auto records = documents(saved());
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[1]["kind"], "hit");
  EXPECT_EQ(records[2]["hits"], 2);
  EXPECT_EQ(records[3]["kind"], "end");
}

TEST_F(WatchCommand, a_rule_stops_with_its_first_hit_and_the_watch_with_the_last_rule) {
  planted.collections();
  step(0, NAN);
  step(1, NAN);  // the job goes on
  EXPECT_EQ(run({"watch", root, "--rules", "ExplodingTensor", "--json"}), 1);
  const auto records = documents(out);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0]["kind"], "hit");
  EXPECT_EQ(records[0]["severity"], "error");
  EXPECT_EQ(records[0]["step"], 0);
  EXPECT_EQ(records[1]["kind"], "diagnosis");
  EXPECT_EQ(records[1]["findings"][0]["hits"], 1);
}

TEST_F(WatchCommand, the_same_hit_again_and_again_is_told_rarely) {
  planted.collections();
  for (Step s = 0; s < 30; ++s) step(s, NAN);
  planted.end();
  EXPECT_EQ(run({"watch", root, "--rules", "ExplodingTensor", "--on-fire", "continue", "--json"}),
            1);
  const auto records = documents(out);
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1]["step"], 9);
  EXPECT_EQ(records[2]["findings"][0]["hits"], 30);
}

TEST_F(WatchCommand, a_healthy_run_is_exit_code_zero_and_is_said_to_have_been_watched) {
  planted.collections();
  step(0, 1);
  planted.end();
  EXPECT_EQ(run({"watch", root, "--rules", "ExplodingTensor"}), 0);
  EXPECT_THAT(out, HasSubstr("no issues found"));
  EXPECT_THAT(saved(), HasSubstr(R"("kind": "end")"));
}

TEST_F(WatchCommand, severities_that_are_accepted_are_exit_code_zero) {
  planted.collections();
  step(0, NAN);
  planted.end();
  EXPECT_EQ(run({"watch", root, "--fail-on", "never"}), 0);
}

TEST_F(WatchCommand, findings_that_cannot_be_saved_are_told_once) {
  planted.collections();
  step(0, NAN);
  planted.end();
  std::ofstream(root + "/findings") << "in the way";
  EXPECT_EQ(run({"watch", root, "--rules", "ExplodingTensor"}), 1);
  EXPECT_THAT(err, HasSubstr("Findings cannot be saved beside the run: "));
  EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1);
  EXPECT_THAT(out, HasSubstr("ExplodingTensor"));
}

TEST_F(WatchCommand, a_run_that_cannot_be_read_any_more_is_exit_code_two) {
  planted.collections();
  step(0, 1);
  std::filesystem::remove_all(root + "/events");
  EXPECT_EQ(run({"watch", root, "--rules", "ExplodingTensor"}), 2);
  EXPECT_THAT(err, HasSubstr("events/"));
  EXPECT_THAT(out, HasSubstr("0 steps"));
}

TEST_F(WatchCommand, wrong_usage_is_told_before_waiting) {
  EXPECT_EQ(run({"watch", root, "--rules", "ExplodingTensors"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'ExplodingTensor'?"));
  EXPECT_THAT(err, Not(HasSubstr("Waiting")));
  EXPECT_EQ(run({"watch", root, "--param", "ExplodingTensor.only_nan=perhaps"}), 2);
  EXPECT_THAT(err, HasSubstr("perhaps"));
  EXPECT_EQ(run({"watch", root, "--interval", "0"}), 2);
  EXPECT_EQ(run({"watch", root, "--on-fire", "contine"}), 2);
  EXPECT_THAT(err, HasSubstr("continue"));
  EXPECT_EQ(run({"watch", root, "--param", "StalledTrainingRule.stop_training_on_fire=yes"}), 2);
  EXPECT_THAT(err, HasSubstr("give the rule to the hook of the training"));
  EXPECT_THAT(err, Not(HasSubstr("Waiting")));
}

// Would last an hour if the rule were not asked more often than the interval says.
TEST_F(WatchCommand, a_rule_that_watches_the_clock_is_asked_in_time) {
  planted.collections();
  step(3, 1);
  EXPECT_EQ(run({"watch", root, "--interval", "3600", "--rules", "StalledTrainingRule", "--param",
                 "StalledTrainingRule.threshold=1", "--param",
                 "StalledTrainingRule.stop_training_on_fire=no"}),
            1)
      << err;
  EXPECT_THAT(out, HasSubstr("No new step for 1 s; the newest is step 3."));
}

}  // namespace
}  // namespace smd::cli
