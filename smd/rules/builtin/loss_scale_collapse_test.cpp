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

constexpr std::string_view kRule = "LossScaleCollapse";

std::string scales(int count, const std::function<double(int)>& scale,
                   std::string_view name = "scalar/loss_scale") {
  std::string out;
  for (int i = 0; i < count; ++i) out += fmt::format("{}@{}={};", name, i, scale(i));
  return out;
}

TEST(LossScaleCollapse, fires_below_one_and_once) {
  const auto falls = [](int i) { return i < 120 ? 1024.0 : i < 130 ? 1.0 : 0.5; };
  EXPECT_THAT(judge(kRule, scales(140, falls)).steps(), ElementsAre(130));
  expect_fires(kRule, scales(140, falls), 130);
  EXPECT_EQ(judge(kRule, scales(140, falls)).finding->severity, Severity::warning);
}

TEST(LossScaleCollapse, many_halvings_are_a_warning_once_the_scale_was_found) {
  const auto late = [](int i) { return i < 150 ? 65536.0 : 65536 * std::exp2(-(i - 149) / 4); };
  const Verdict verdict = judge(kRule, scales(175, late));
  EXPECT_THAT(verdict.steps(), ElementsAre(169));
  EXPECT_EQ(verdict.finding->severity, Severity::warning);
  const Verdict search =
      judge(kRule, scales(150, [](int i) { return std::exp2(16 - std::min(i, 6)); }));
  EXPECT_EQ(search.finding->severity, Severity::info);
}

TEST(LossScaleCollapse, an_ordinary_scale_is_silent) {
  // Doubled every 50 steps and halved after that now and then.
  expect_silent(kRule, scales(400, [](int i) { return i % 50 < 25 ? 32768.0 : 65536.0; }));
  expect_silent(kRule, scales(300, [](int) { return 1.0; }));
}

TEST(LossScaleCollapse, names_and_wrong_parameters) {
  for (const char* name : {"grad_scale", "GradScaler", "train/loss_scale", "lossscale"}) {
    EXPECT_EQ(judge(kRule, scales(
                               2, [](int) { return 0.5; }, name))
                  .hits.size(),
              1u)
        << name;
  }
  EXPECT_THAT(judge(kRule, "loss@0=1").missing.value_or(""), HasSubstr("loss scales"));
  EXPECT_THAT(creation_error(kRule, {{"halvings", 1}}), HasSubstr("at least 2"));
  EXPECT_THAT(creation_error(kRule, {{"min_scale", -1}}), HasSubstr("at least 0"));
}

}  // namespace
}  // namespace smd::rules
