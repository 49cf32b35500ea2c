#include "smd/watch/needs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::watch {
namespace {

using rules::Statistic;
using rules::StatisticSet;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names(ReductionSet set) {
  std::vector<std::string> out;
  set.for_each([&](Reduction one) { out.push_back(one.name()); });
  return out;
}

std::vector<std::string> stored_for(StatisticSet statistics) {
  const auto found = reductions_for(statistics);
  return found ? names(*found) : std::vector<std::string>{"values"};
}

std::vector<SaveWish> needs(std::string_view rule, const Json& parameters = Json::object(),
                            std::optional<int64_t> interval = {}) {
  rules::Runner runner({});
  const auto kind = rules::find_rule(rule);
  EXPECT_TRUE(kind.ok() && runner.add(**kind, parameters).ok());
  auto made = needs_of(*runner.evaluations().front(), interval);
  EXPECT_TRUE(made.ok());
  return made.ok() ? std::move(*made) : std::vector<SaveWish>{};
}

TEST(Needs, a_statistic_that_is_a_reduction_is_stored_as_it_is) {
  EXPECT_THAT(stored_for({Statistic::abs_mean}), ElementsAre("abs_mean"));
  EXPECT_THAT(stored_for({Statistic::min, Statistic::max}),
              testing::UnorderedElementsAre("min", "max"));
  EXPECT_THAT(stored_for({Statistic::variance}), ElementsAre("variance"));
}

TEST(Needs, one_reduction_is_enough_for_what_follows_from_it) {
  EXPECT_EQ(stored_for({Statistic::nonfinite}).size(), 1u);
  EXPECT_EQ(stored_for({Statistic::nonfinite, Statistic::all_zero, Statistic::has_nan}).size(), 1u);
  EXPECT_THAT(stored_for({Statistic::std, Statistic::variance}).size(), 1u);
}

TEST(Needs, counts_need_the_values) {
  EXPECT_THAT(stored_for({Statistic::zero_count}), ElementsAre("values"));
}

TEST(Needs, nothing_needs_nothing) { EXPECT_THAT(stored_for({}), IsEmpty()); }

TEST(Needs, a_rule_asks_for_its_collection_as_often_as_its_table_says) {
  const auto wishes = needs("VanishingGradient");
  ASSERT_EQ(wishes.size(), 1u);
  EXPECT_EQ(wishes[0].collection, "gradients");
  EXPECT_EQ(wishes[0].default_interval, 500);
  EXPECT_FALSE(wishes[0].save_config.has_value());
  EXPECT_FALSE(wishes[0].raw);
  EXPECT_THAT(names(wishes[0].reductions), ElementsAre("abs_mean"));
}

TEST(Needs, an_interval_that_somebody_gave_counts) {
  const auto wishes = needs("VanishingGradient", Json::object(), 7);
  const auto given = wishes.at(0).save_config.value_or(SaveConfig()).save_interval();
  EXPECT_TRUE(given.ok() && *given == 7);
  rules::Runner runner({});
  ASSERT_TRUE(runner.add(**rules::find_rule("VanishingGradient"), Json::object()).ok());
  EXPECT_FALSE(needs_of(*runner.evaluations().front(), 0).ok());
}

TEST(Needs, patterns_get_a_collection_of_their_own) {
  const auto wishes = needs(
      "ExplodingTensor",
      {{"tensor_regex", "act|out"}, {"collection_names", "losses"}, {"exclude_regex", "relu"}});
  ASSERT_EQ(wishes.size(), 2u);
  EXPECT_EQ(wishes[0].collection, "losses");
  EXPECT_EQ(wishes[1].collection, "rule_exploding_tensor");
  EXPECT_THAT(wishes[1].include_regex, ElementsAre("act|out"));
  EXPECT_THAT(wishes[1].exclude_regex, ElementsAre("relu"));
  EXPECT_FALSE(wishes[1].default_interval.has_value());
}

TEST(Needs, a_rule_that_looks_at_everything_asks_for_nothing) {
  EXPECT_THAT(needs("ExplodingTensor"), IsEmpty());
}

}  // namespace
}  // namespace smd::watch
