#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::HasSubstr;

constexpr std::string_view kRule = "CheckInputImages";

CaseOptions with(const Json& more = {}, int samples = 4) {
  Json parameters = {{"regex", "image"}, {"threshold_samples", samples}};
  if (!more.is_null()) parameters.update(more);
  return {.parameters = parameters};
}

TEST(CheckInputImages, fires_when_enough_images_are_off_centre) {
  const std::string half = "[[[[0.5,0.5]]],[[[0.5,0.5]]]]";
  expect_fires(kRule, "image@0=" + half + "; image@1=" + half, 1, with());
}

TEST(CheckInputImages, is_silent_for_centred_images) {
  const std::string centred = "[[[[-1,1]]],[[[-1,1]]]]";
  expect_silent(kRule, "image@0=" + centred + "; image@1=" + centred, with());
}

TEST(CheckInputImages, each_channel_is_judged_in_every_layout) {
  // Two channels, of which the second has the mean 0.5.
  const std::string nchw = "image@0=[[[[-1,1],[1,-1]],[[0,1],[1,0]]]]";
  const std::string nhwc = "image@0=[[[[-1,0],[1,1]],[[1,1],[-1,0]]]]";
  for (const auto& [run, channel] : {std::pair(nchw, 1), std::pair(nhwc, 3)}) {
    const Verdict verdict = judge(kRule, run, with({{"channel", channel}}, 1));
    ASSERT_EQ(verdict.hits.size(), 1u) << channel;
    ASSERT_EQ(verdict.hits[0].violations.size(), 1u) << channel;
    const Violation& hit = verdict.hits[0].violations[0];
    EXPECT_EQ(hit.metric, "abs_channel_mean");
    EXPECT_EQ(hit.value, 0.5);
    EXPECT_EQ(hit.threshold, 0.2);
    EXPECT_EQ(hit.context["channel"], 1);
    EXPECT_EQ(hit.context["channel_means"], Json({0.0, 0.5}));
    EXPECT_EQ(hit.context["channel_stds"], Json({1.0, 0.5}));
    EXPECT_EQ(hit.context["images"], 1);
    EXPECT_THAT(verdict.hits[0].message, HasSubstr("Channel 1 of 'image' has the mean 0.5"));
  }
}

TEST(CheckInputImages, large_images_are_summed_over_all_blocks) {
  // 3 channels of 5000 elements each: blocks end inside of channels.
  std::string run = "image@0:float32=[[";
  for (int channel = 0; channel < 3; ++channel) {
    run += channel == 0 ? "[" : ",[";
    for (int i = 0; i < 5000; ++i) {
      run += (i == 0 ? "" : ",") + std::to_string(channel * 10 + (i % 2 == 0 ? 1 : -1));
    }
    run += "]";
  }
  const Verdict verdict = judge(kRule, run + "]]", with({}, 1));
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.context["channel_means"], Json({0.0, 10.0, 20.0}));
  EXPECT_EQ(hit.context["channel_stds"], Json({1.0, 1.0, 1.0}));
  EXPECT_EQ(verdict.hits[0].violation_count, 2u);
}

TEST(CheckInputImages, with_fewer_axes_there_is_one_mean) {
  expect_fires(kRule, "image@0=[1,-1,1,1]", 0, with());
  expect_silent(kRule, "image@0=[1,-1,1,-1]", with());
}

TEST(CheckInputImages, integer_images_fire) {
  expect_fires(kRule, "image@3:uint8=[[[[0,255]]]]", 3, with({}, 1));
}

TEST(CheckInputImages, spread_of_pixels_far_from_zero_is_exact) {
  const Verdict verdict = judge(kRule, "image@0=[[100000001,100000003]]", with({}, 1));
  EXPECT_EQ(verdict.hits.at(0).violation_count, 2u);
  const Verdict joint = judge(kRule, "image@0=[100000001,100000003]", with({}, 1));
  EXPECT_EQ(joint.hits.at(0).violations.at(0).context["channel_stds"][0], 1.0);
}

TEST(CheckInputImages, elements_that_are_not_finite_are_left_out_and_counted) {
  const std::string run = "image@0=[[[[nan,1,-1,inf]]]]; image@1=[[[[-inf,1,3,2]]]]";
  expect_silent(kRule, "image@0=[[[[nan,1,-1,inf]]]]", with({}, 1));
  const Verdict verdict = judge(kRule, run, with({}, 2));
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.value, 1.2);
  EXPECT_EQ(hit.context["nonfinite_count"], 3);
}

TEST(CheckInputImages, the_mean_runs_on) {
  expect_fires(kRule, "image@0=[[[[0]]]]; image@1=[[[[0.3]]]]; image@2=[[[[0.6]]]]", 2,
               with({}, 1));
}

TEST(CheckInputImages, the_spread_is_judged_on_request) {
  const std::string run = "image@0=[[[[-4,4]]]]";
  expect_silent(kRule, run, with({}, 1));
  expect_fires(kRule, run, 0, with({{"threshold_std", "2.5"}}, 1));
  expect_silent(kRule, run, with({{"threshold_std", 3}}, 1));
}

TEST(CheckInputImages, tells_how_many_images_are_missing) {
  EXPECT_THAT(judge(kRule, "image@0=[[[[9]]]]", with()).missing.value_or(""),
              HasSubstr("It needs 4 images (threshold_samples), and the run has 1."));
  EXPECT_THAT(judge(kRule, "x@0=[9]").missing.value_or(""),
              HasSubstr("needs images (names with '.*hybridsequential0_input_0')"));
}

TEST(CheckInputImages, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"channel", -1}}), HasSubstr("at least 0"));
  EXPECT_THAT(creation_error(kRule, {{"threshold_samples", "many"}}), HasSubstr("a whole number"));
  EXPECT_THAT(creation_error(kRule, {{"threshold_mean", "-0.1"}}), HasSubstr("at least 0"));
}

}  // namespace
}  // namespace smd::rules
