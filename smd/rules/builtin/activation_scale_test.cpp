#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "ActivationScale";

TEST(ActivationScale, names_the_layer_whose_activations_are_far_from_the_others) {
  const std::string run =
      "layers.0.relu_input_0@T0=[-1,1]; layers.1.relu_input_0@T0=[-30,30];"
      "layers.2.relu_input_0@T0=[-28,28]";
  expect_fires(kRule, run, 0);
  EXPECT_EQ(judge(kRule, run).finding->tensors[0].tensor, "layers.1.relu_input_0");
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("neighbour 'layers.0.relu_input_0'"));
  // Too narrow, and the first of two.
  const std::string narrow = "a.tanh_input_0@T0=[-0.01,0.01]; b.tanh_input_0@T0=[-1,1]";
  EXPECT_EQ(judge(kRule, narrow).finding->tensors[0].tensor, "a.tanh_input_0");
  expect_fires(kRule, "a.relu_input_0~std@4=1; b.relu_input_0~std@4=0.05", 4);
}

TEST(ActivationScale, tells_each_layer_once) {
  EXPECT_THAT(judge(kRule,
                    "a.relu_input_0@T0,T1=[-1,1],[-1,1];"
                    "b.relu_input_0@T0,T1=[-30,30],[-40,40]")
                  .steps(),
              ElementsAre(0));
}

TEST(ActivationScale, layers_of_like_size_and_later_steps_are_silent) {
  expect_silent(kRule, "a.relu_input_0@T0=[-1,1]; b.relu_input_0@T0=[-9,9]");
  expect_silent(kRule, "a.relu_input_0@T0=[-1,1]; b.relu_input_0@T0=[0,0]");
  expect_silent(kRule,
                "a.relu_input_0@T0=[-1,1]; b.relu_input_0@T0=[-1,1];"
                "a.relu_input_0@T1=[-1,1]; b.relu_input_0@T1=[-99,99]");
  expect_silent(kRule,
                "a.relu_input_0@E0=[-1,1]; b.relu_input_0@E0=[-99,99];"
                "a.relu_input_0@T1=[-1,1]; b.relu_input_0@T1=[-1,1]");
}

TEST(ActivationScale, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"ratio", 1}}), HasSubstr("above 1"));
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("inputs of activations"));
}

}  // namespace
}  // namespace smd::rules
