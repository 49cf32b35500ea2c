#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/cli/internal/program_test_case.h"
#include "tests/support/golden_folder.h"
#include "tests/support/planted_run.h"

namespace smd::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class LsCommand : public ProgramTestCase {
 protected:
  LsCommand() { planted.storage = storage::local_storage(root); }

  std::vector<std::string> names() const {
    const Json document = json();
    std::vector<std::string> found;
    for (const Json& tensor : document["tensors"]) found.push_back(tensor["name"]);
    return found;
  }

  const std::string golden = golden_folder();
  const std::string root = folder + "/run";
  PlantedRun planted;
};

TEST_F(LsCommand, tells_type_shape_steps_and_what_is_stored) {
  EXPECT_EQ(run({"ls", golden + "/shapes"}), 0) << err;
  EXPECT_EQ(out,
            "tensor        dtype    shape   steps  range   size  stored\n"
            "empty         -        [0, 4]      1      1    0 B  shape\n"
            "layer/bias    float32  [3]         1      1  110 B  value\n"
            "layer/weight  -        [2, 3]      2    0-1    0 B  shape\n"
            "scalar        -        []          1      0    0 B  shape\n");
  EXPECT_EQ(err, "");
}

TEST_F(LsCommand, every_element_type_is_told) {
  EXPECT_EQ(run({"ls", "--json", golden + "/types", "--regex", "^dtype/(bool|complex64|qint8)$"}),
            0);
  EXPECT_EQ(json()["tensors"][0]["dtype"], "bool");
  EXPECT_EQ(json()["tensors"][1]["dtype"], "complex64");
  EXPECT_EQ(json()["tensors"][2]["dtype"], "int8");
}

TEST_F(LsCommand, the_newest_value_counts_also_when_it_is_large) {
  planted.collections();
  planted.step(0).floats("w", std::vector<float>(3));
  planted.step(1).floats("w", std::vector<float>(30'000));
  EXPECT_EQ(run({"ls", "--json", root}), 0);
  EXPECT_EQ(json()["tensors"][0]["shape"], Json({30'000}));
  EXPECT_EQ(json()["tensors"][0]["steps"], 2);
}

TEST_F(LsCommand, filters_can_be_combined) {
  planted.collections(2);
  planted.step(0).floats("a/bias", {1}).floats("a/weight", {1, 2, 3}).scalar("loss", 1);
  planted.step(0, "worker_1").floats("b/bias", {1});
  planted.step({.step = 1, .mode = Mode::eval, .mode_step = 0}).scalar("loss", 2);
  EXPECT_EQ(run({"ls", "--json", root, "--collection", "biases"}), 0);
  EXPECT_THAT(names(), ElementsAre("a/bias", "b/bias"));
  EXPECT_EQ(run({"ls", "--json", root, "--collection", "biases", "--worker", "worker_1"}), 0);
  EXPECT_THAT(names(), ElementsAre("b/bias"));
  EXPECT_EQ(run({"ls", "--json", root, "--mode", "eval"}), 0);
  EXPECT_THAT(names(), ElementsAre("loss"));
  EXPECT_EQ(json()["tensors"][0]["last_step"], 0);
  EXPECT_EQ(run({"ls", "--json", "--regex", "loss", "--regex", "weight", root, "--step", "0"}), 0);
  EXPECT_THAT(names(), ElementsAre("a/weight", "loss"));
  EXPECT_EQ(run({"ls", "--json", root, "--sort", "steps", "--limit", "1"}), 0);
  EXPECT_THAT(names(), ElementsAre("loss"));
  EXPECT_EQ(json()["not_listed"], 3);
  EXPECT_EQ(run({"ls", root, "--sort", "size", "--limit", "1"}), 0);
  EXPECT_THAT(out, HasSubstr("… and 3 more tensors\n"));
  EXPECT_EQ(run({"ls", root, "--regex", "nothing"}), 0);
  EXPECT_EQ(out, "No saved tensor fits.\n");
}

TEST_F(LsCommand, wrong_choices_get_the_nearest_one) {
  const std::string hook = golden + "/hook";
  EXPECT_EQ(run({"ls", hook, "--collection", "losess"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'losses'?"));
  EXPECT_EQ(run({"ls", hook, "--mode", "tran"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'TRAIN'?"));
  EXPECT_EQ(run({"ls", hook, "--mode", "predict"}), 2);
  EXPECT_THAT(err, HasSubstr("no steps of mode PREDICT, only of TRAIN and EVAL."));
  EXPECT_EQ(run({"ls", hook, "--worker", "worker_1"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'worker_0'?"));
  EXPECT_EQ(run({"ls", hook, "--step", "99"}), 2);
  EXPECT_THAT(err, HasSubstr("Step 99 was not saved; the nearest is 3."));
  EXPECT_EQ(run({"ls", hook, "--sort", "nam"}), 2);
  EXPECT_THAT(err, HasSubstr("Did you mean 'name'?"));
  EXPECT_EQ(run({"ls", hook, "--regex", "("}), 2);
  EXPECT_EQ(run({"ls", hook, "--limit", "-1"}), 2);
}

TEST_F(LsCommand, names_cannot_steer_the_terminal) {
  planted.collections();
  planted.step(0).scalar("a\x1b[31mred\n", 1);
  EXPECT_EQ(run({"ls", root}), 0);
  EXPECT_THAT(out, HasSubstr("a\\x1b[31mred\\x0a"));
  EXPECT_THAT(out, Not(HasSubstr("\x1b")));
}

TEST_F(LsCommand, lines_fit_the_terminal) {
  planted.collections();
  planted.step(0).scalar(std::string(200, 'n'), 1);
  is_terminal = true;
  width = 60;
  EXPECT_EQ(run({"ls", root, "--color", "never"}), 0);
  for (size_t at = 0; at < out.size();) {
    const size_t end = out.find('\n', at);
    EXPECT_LE(end - at, 60u + 2) << out;  // the sign for what was cut takes three bytes
    at = end + 1;
  }
}

TEST_F(LsCommand, a_missing_event_file_costs_type_and_shape_only) {
  planted.collections();
  planted.step(0).floats("w", {1, 2});
  ASSERT_TRUE(planted.storage->remove(format::event_file_name(0, "worker_0")).ok());
  EXPECT_EQ(run({"ls", "--json", root}), 0) << err;
  EXPECT_EQ(json()["tensors"][0]["name"], "w");
  EXPECT_EQ(json()["tensors"][0]["dtype"], nullptr);
}

}  // namespace
}  // namespace smd::cli
