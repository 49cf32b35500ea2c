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

constexpr std::string_view kRule = "GradientNotReset";

double noise(int i, int which) {
  const double mixed = std::sin(i * 12.9898 + which * 78.233) * 43758.5453;
  return 2 * (mixed - std::floor(mixed)) - 1;
}

// Three gradients of two elements.
std::string gradients(int count, const std::function<double(int, int)>& value) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < 3; ++k) {
      out += fmt::format("gradient/{0}@T{1}=[{2},{2}];", k, i, value(i, k));
    }
  }
  return out;
}

TEST(GradientNotReset, fires_when_gradients_add_up) {
  const std::string run = gradients(60, [](int i, int k) {
    double sum = 0;
    for (int j = 0; j <= i; ++j) sum += 1 + 0.5 * noise(j, k);
    return sum;
  });
  expect_fires(kRule, run, 11);
  EXPECT_THAT(judge(kRule, run).steps(), ElementsAre(11));
  EXPECT_THAT(judge(kRule, run).hits[0].message, HasSubstr("3 of 3 gradients grow like a sum"));
}

TEST(GradientNotReset, gradients_of_single_batches_are_silent) {
  expect_silent(kRule, gradients(90, [](int i, int k) { return 1 + 2 * noise(i, k); }));
  // Large and noisy, smooth and falling, one that grows alone, and NaN.
  expect_silent(kRule, gradients(90, [](int i, int k) { return (1 + 0.1 * i) * 3 * noise(i, k); }));
  expect_silent(kRule, gradients(90, [](int i, int) { return std::exp(-i / 30.0); }));
  expect_silent(kRule, gradients(90, [](int i, int k) { return k == 0 ? i + 1 : noise(i, k); }));
  expect_silent(kRule,
                gradients(40, [](int i, int) { return i == 0 ? NAN : static_cast<float>(i); }));
}

TEST(GradientNotReset, wrong_parameters_are_told) {
  EXPECT_THAT(creation_error(kRule, {{"window", 4}}), HasSubstr("at least 5"));
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("gradients"));
}

}  // namespace
}  // namespace smd::rules
