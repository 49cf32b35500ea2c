#include "smd/config/reduction_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/base/json.h"

namespace smd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names(const std::vector<Reduction>& list) {
  std::vector<std::string> out;
  for (Reduction reduction : list) out.push_back(reduction.name());
  return out;
}

TEST(ReductionConfig, keeps_the_order_of_each_list) {
  const auto config = ReductionConfig::create({.reductions = {"std", "variance"},
                                               .abs_reductions = {"mean"},
                                               .norms = {"l2", "l1"},
                                               .abs_norms = {"l1_norm"}});
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(names(config->reductions()), ElementsAre("std", "variance"));
  EXPECT_THAT(names(config->abs_reductions()), ElementsAre("abs_mean"));
  EXPECT_THAT(names(config->norms()), ElementsAre("l2", "l1"));
  EXPECT_THAT(names(config->abs_norms()), ElementsAre("abs_l1"));
  EXPECT_EQ(config->set().size(), 6);
  EXPECT_FALSE(config->save_raw_tensor());
}

TEST(ReductionConfig, an_item_may_be_a_comma_list) {
  const auto config = ReductionConfig::create({.reductions = {"min, max,,min"}});
  ASSERT_TRUE(config.ok());
  EXPECT_THAT(names(config->reductions()), ElementsAre("min", "max"));
}

TEST(ReductionConfig, refuses_names_in_the_wrong_list) {
  EXPECT_THAT(
      ReductionConfig::create({.reductions = {"meen"}}).error().message,
      AllOf(HasSubstr("'meen' cannot stand in reductions"), HasSubstr("Did you mean 'mean'?")));
  EXPECT_THAT(ReductionConfig::create({.reductions = {"l1"}}).error().message, HasSubstr("'l1'"));
  EXPECT_THAT(ReductionConfig::create({.norms = {"max"}}).error().message, HasSubstr("l1, l2"));
  EXPECT_FALSE(ReductionConfig::create({.abs_reductions = {"abs_mean"}}).ok());
}

TEST(ReductionConfig, default_saves_nothing_and_raw_only_saves_the_values) {
  EXPECT_TRUE(ReductionConfig().saves_nothing());
  EXPECT_FALSE(ReductionConfig::raw_only().saves_nothing());
  EXPECT_FALSE(ReductionConfig::create({.save_shape = true})->saves_nothing());
  EXPECT_EQ(dump_json(ReductionConfig::raw_only().to_json()),
            R"({"save_raw_tensor": true, "reductions": "", "save_shape": false})");
}

TEST(ReductionConfig, json_lists_norms_with_suffix_after_reductions) {
  const auto config = ReductionConfig::create({.reductions = {"min", "mean"},
                                               .abs_reductions = {"max"},
                                               .norms = {"l2"},
                                               .abs_norms = {"l1"},
                                               .save_shape = true});
  EXPECT_EQ(dump_json(config->to_json()),
            R"({"save_raw_tensor": false, "reductions": "min,mean,l2_norm,abs_max,abs_l1_norm", )"
            R"("save_shape": true})");
  EXPECT_EQ(*ReductionConfig::from_json(config->to_json()), *config);
}

TEST(ReductionConfig, json_keeps_median_apart_and_reads_it_back) {
  const auto config =
      ReductionConfig::create({.reductions = {"min", "median"}, .abs_reductions = {"median"}});
  EXPECT_EQ(dump_json(config->to_json()),
            R"({"save_raw_tensor": false, "reductions": "min", "save_shape": false, )"
            R"("extra_reductions": "median,abs_median"})");
  EXPECT_EQ(ReductionConfig::from_json(config->to_json())->set(), config->set());
}

TEST(ReductionConfig, json_knows_every_reduction) {
  ReductionConfig config;
  all_reductions().for_each([&](Reduction reduction) { config.add(reduction); });
  EXPECT_EQ(ReductionConfig::from_json(config.to_json())->set(), all_reductions());
}

TEST(ReductionConfig, json_accepts_norms_without_suffix_and_lists) {
  const auto suffixed = ReductionConfig::from_json({{"reductions", "l1_norm,abs_l2_norm"}});
  const auto bare = ReductionConfig::from_json({{"reductions", {"l1", "abs_l2"}}});
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ(*bare, *suffixed);
}

TEST(ReductionConfig, order_does_not_count_in_comparisons) {
  const auto one = ReductionConfig::create({.reductions = {"median", "min"}});
  const auto other = ReductionConfig::create({.reductions = {"min", "median"}});
  EXPECT_EQ(*one, *other);
  EXPECT_EQ(*ReductionConfig::from_json(one->to_json()), *one);
  EXPECT_FALSE(*one == *ReductionConfig::create({.abs_reductions = {"median", "min"}}));
}

TEST(ReductionConfig, json_errors_name_the_key) {
  EXPECT_THAT(
      ReductionConfig::from_json({{"reductions", "min,maxx"}}).error().message,
      AllOf(HasSubstr("reduction_config.reductions: 'maxx'"), HasSubstr("Did you mean 'max'?")));
  EXPECT_THAT(ReductionConfig::from_json({{"save_raw_tensor", "maybe"}}).error().message,
              HasSubstr("reduction_config.save_raw_tensor"));
  EXPECT_THAT(ReductionConfig::from_json({{"save_shapes", true}}).error().message,
              HasSubstr("Did you mean 'save_shape'?"));
  EXPECT_THAT(ReductionConfig::from_json("min").error().message, HasSubstr("expected an object"));
  EXPECT_TRUE(ReductionConfig::from_json({{"later", 1}}, "r", UnknownKeys::ignore).ok());
}

}  // namespace
}  // namespace smd
