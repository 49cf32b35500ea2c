#include "smd/hook/findings.h"

#include <gtest/gtest.h>

#include <limits>

#include "smd/base/json.h"

namespace smd {
namespace {

const StepInfo kStep{.step = 12, .mode = Mode::train, .mode_step = 10};

BadTensors found() {
  BadTensors bad;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<std::string, Number> results[] = {{"max", Number::real(DType::float32, nan)}};
  bad.see(kStep, "net.1_output_0", results);
  bad.see(kStep, "net.2_input_0", results);
  return bad;
}

TEST(Findings, the_first_bad_tensor_is_told_with_its_line) {
  BadTensors bad = found();
  bad.set_call_site(
      {.module = "net.1", .file = "train.py", .line = 7, .text = "x = self.b(x)", .note = "So."});
  const BadTensorFinding finding{
      .bad = bad, .worker = "worker_0", .before = {}, .last_saved_step = 10};
  EXPECT_EQ(to_text(finding),
            "First non-finite value of the training: 'net.1_output_0' (NaN or infinity) at step 12 "
            "(TRAIN step 10), module net.1, followed by 1 more in this step. So. Called at "
            "train.py:7: x = self.b(x)");
  const Json json = *parse_json(to_json(finding), "");
  EXPECT_EQ(json["tensor"], "net.1_output_0");
  EXPECT_EQ(json["step"], 12);
  EXPECT_EQ(json["mode"], "TRAIN");
  EXPECT_EQ(json["source"]["line"], 7);
  EXPECT_EQ(json["after_it"][0]["tensor"], "net.2_input_0");
  EXPECT_TRUE(json["nan"].is_null()) << "not counted is not zero";
  EXPECT_EQ(bad_tensor_file_name("worker_0"), "findings/first_bad_tensor_worker_0.json");
}

TEST(Findings, statistics_of_the_steps_before_may_be_infinite) {
  const BadTensors bad = found();
  const Number inf = Number::real(DType::float32, std::numeric_limits<double>::infinity());
  const StoredReduction values[] = {{.name = "max", .dtype = inf.dtype, .bits = inf.bits}};
  const BadTensorFinding finding{.bad = bad,
                                 .worker = "worker_0",
                                 .before = {{{.step = 11}, values}, {kStep, values}},
                                 .last_saved_step = {}};
  const Json json = *parse_json(to_json(finding), "");
  ASSERT_EQ(json["before"].size(), 1u) << "the step itself is not before it";
  EXPECT_EQ(json["before"][0]["step"], 11);
  EXPECT_EQ(json["before"][0]["max"], "inf");
  EXPECT_TRUE(json["source"].is_null());
}

TEST(Findings, a_dump_says_where_the_steps_are) {
  const FlightDump dump{.reason = "SIGTERM",
                        .worker = "worker_0",
                        .in_run = {8, 9},
                        .in_folder = {6},
                        .folder = "flight"};
  EXPECT_EQ(to_text(dump),
            "Flight recorder written (SIGTERM): 2 steps from 8 to 9 added to the run, step 6 in "
            "the run 'flight' below it.");
  const Json json = *parse_json(to_json(dump), "");
  EXPECT_EQ(json["steps_in_run"], Json({8, 9}));
  EXPECT_EQ(json["folder"], "flight");
  EXPECT_NE(to_text({.reason = "x", .worker = "w"}).find("in the run already"), std::string::npos);
}

}  // namespace
}  // namespace smd
