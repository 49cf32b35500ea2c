#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "GradientSynchronization";

// One gradient on two workers; `apart` is the difference.
std::string gradients(int count, const std::function<double(int)>& apart) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    out += fmt::format("gradient/a@{0}=[{1},1];gradient/a@{0}#worker_1=[{2},1];", i, i + 1,
                       i + 1 + apart(i));
  }
  return out;
}

TEST(GradientSynchronization, local_gradients_that_are_equal_come_from_the_same_batch) {
  const std::string same = gradients(10, [](int) { return 0; });
  expect_fires(kRule, same, 4, {.parameters = {{"stage", "local"}}});
  EXPECT_THAT(judge(kRule, same, {.parameters = {{"stage", "local"}}}).hits.at(0).message,
              HasSubstr("get the same batches"));
  const std::string later = gradients(20, [](int i) { return i < 8 ? 1 : 0; });
  expect_fires(kRule, later, 12);
}

TEST(GradientSynchronization, equal_inputs_of_the_loss_tell_of_the_same_batch_from_the_start) {
  const auto with_inputs = [](double apart) {
    std::string out = gradients(12, [](int) { return 0; });
    for (int i = 0; i < 12; ++i) {
      out += fmt::format(
          "CrossEntropyLoss_input_0@{0}=[{1},2];"
          "CrossEntropyLoss_input_0@{0}#worker_1=[{2},2];",
          i, i, i + apart);
    }
    return out;
  };
  expect_fires(kRule, with_inputs(0), 4);
  expect_silent(kRule, with_inputs(0.5));
}

TEST(GradientSynchronization, reduced_gradients_must_be_equal) {
  const std::string lost = gradients(12, [](int i) { return i < 8 ? 0 : 1; });
  expect_fires(kRule, lost, 8);
  EXPECT_THAT(judge(kRule, lost).steps(), ElementsAre(8));
  expect_fires(kRule, gradients(3, [](int) { return 1; }), 0,
               {.parameters = {{"stage", "reduced"}}});
}

TEST(GradientSynchronization, norms_are_enough) {
  std::string run;
  for (int i = 0; i < 8; ++i) {
    run += fmt::format(
        "gradient/a~l2@{0}=2;gradient/a~l2@{0}#worker_1={1};"
        "gradient/a~abs_max@{0}=1;gradient/a~abs_max@{0}#worker_1=1;",
        i, i < 6 ? 2.0000001 : 3.0);
  }
  expect_fires(kRule, run, 6);
}

TEST(GradientSynchronization, healthy_gradients_are_silent) {
  expect_silent(kRule, gradients(20, [](int) { return 0; }));
  expect_silent(kRule, gradients(20, [](int i) { return i + 1; }));
  // A single worker, and zeros of parts that no batch has reached.
  expect_silent(kRule, "gradient/a@0=[1]; gradient/a@1=[1]");
  std::string zeros;
  for (int i = 0; i < 10; ++i) {
    zeros += fmt::format(
        "gradient/a@{0}=[0];gradient/a@{0}#worker_1=[0];"
        "gradient/b@{0}=[1];gradient/b@{0}#worker_1=[2];",
        i);
  }
  expect_silent(kRule, zeros, {.parameters = {{"stage", "local"}}});
}

TEST(GradientSynchronization, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"stage", "locl"}}), HasSubstr("local"));
  EXPECT_THAT(creation_error(kRule, {{"patience", 0}}), HasSubstr("at least 1"));
}

}  // namespace
}  // namespace smd::rules
