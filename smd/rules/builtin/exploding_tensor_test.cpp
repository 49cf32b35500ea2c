#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::string_view kRule = "ExplodingTensor";

TEST(ExplodingTensor, fires_at_an_infinity) { expect_fires(kRule, "x@0=[1,2]; x@5=[1,inf]", 5); }

TEST(ExplodingTensor, accepts_infinities_with_only_nan) {
  expect_silent(kRule, "x@0=[1,2]; x@5=[1,inf]", {.parameters = {{"only_nan", true}}});
  expect_fires(kRule, "x@0=[1,2]; x@5=[1,nan]", 5, {.parameters = {{"only_nan", "yes"}}});
}

TEST(ExplodingTensor, single_numbers_and_small_floats_are_judged) {
  expect_fires(kRule, "loss@0,1=0.5,nan", 1);
  expect_fires(kRule, "x@0:float16=[1,2]; x@2:float16=[1,-inf]", 2);
  expect_fires(kRule, "x@2:bfloat16=[1,-inf]", 2);
}

TEST(ExplodingTensor, integers_and_booleans_are_never_infinite) {
  expect_silent(kRule, "x@0:int32=[1,2147483647]; y@0:bool=[0,1]; z@0:uint8=[255]");
}

TEST(ExplodingTensor, both_parts_of_complex_numbers_count) {
  expect_fires(kRule, "z@0:complex64=[[1,2],[3,4]]; z@3:complex64=[[1,2],[3,nan]]", 3);
  expect_fires(kRule, "z@3:complex128=[[1,2],[-inf,4]]", 3);
}

TEST(ExplodingTensor, minimum_and_maximum_are_enough_and_the_mean_is_not) {
  expect_fires(kRule, "x~min@2=0; x~max@2=inf", 2);
  expect_silent(kRule, "x~min@2=0; x~max@2=1");
  expect_fires(kRule, "x~abs_max@2=nan", 2);
  EXPECT_TRUE(judge(kRule, "x~mean@2=inf; x~l2@2=inf; x~max@2=1").missing.has_value());
}

TEST(ExplodingTensor, tells_counts_place_and_magnitude) {
  const Verdict verdict = judge(kRule, "x@0=[[1,-7],[inf,nan],[-inf,inf]]");
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.value, 4);
  EXPECT_EQ(hit.context["nan_count"], 1);
  EXPECT_EQ(hit.context["positive_inf_count"], 2);
  EXPECT_EQ(hit.context["negative_inf_count"], 1);
  EXPECT_EQ(hit.context["first_index"], 2);
  EXPECT_EQ(hit.context["largest_finite"], 7);
}

TEST(ExplodingTensor, the_tensor_that_was_saved_first_comes_first) {
  const Verdict verdict = judge(kRule, "z_input@0=[1]; y_layer@0=[nan]; a_loss@0=nan");
  EXPECT_EQ(verdict.hits.at(0).violations.at(0).tensor, "y_layer");
  EXPECT_EQ(verdict.hits.at(0).violations.at(1).tensor, "a_loss");
  EXPECT_THAT(verdict.hits.at(0).message, HasSubstr("'y_layer' holds NaN, the first of 2 tensors"));
}

TEST(ExplodingTensor, selectors_are_a_union) {
  const std::string run = "a@0=[nan]; b@1=[nan]; loss@2=nan";
  expect_fires(kRule, run, 0);
  expect_fires(kRule, run, 1, {.parameters = {{"tensor_regex", "b, loss"}}});
  EXPECT_THAT(
      judge(kRule, run, {.parameters = {{"tensor_regex", "b"}, {"collection_names", {"losses"}}}})
          .steps(),
      ElementsAre(1, 2));
  expect_fires(kRule, run, 1, {.parameters = {{"exclude_regex", "a"}}});
  EXPECT_THAT(creation_error(kRule, {{"tensor_regex", "("}}), HasSubstr("("));
}

}  // namespace
}  // namespace smd::rules
