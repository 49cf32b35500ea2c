#include "smd/reduce/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace smd {
namespace {

TEST(Reduction, every_kind_is_complete) {
  std::set<std::string_view> names;
  for (const ReductionKind* kind : reduction_kinds()) {
    EXPECT_TRUE(names.insert(kind->name).second) << kind->name;
    EXPECT_NE(kind->needs, Needs::nothing) << kind->name;
    EXPECT_NE(kind->finish, nullptr) << kind->name;
    EXPECT_NE(kind->oracle, nullptr) << kind->name;
  }
}

TEST(Reduction, all_spellings_lead_back_to_the_reduction) {
  all_reductions().for_each([](Reduction r) {
    EXPECT_EQ(*parse_reduction(r.name()), r);
    EXPECT_EQ(*parse_reduction(r.config_name()), r);
  });
  EXPECT_EQ(parse_reduction("abs_l2")->config_name(), "abs_l2_norm");
  EXPECT_EQ(parse_reduction("std")->config_name(), "std");
}

TEST(Reduction, an_unknown_name_is_refused_with_the_nearest_choice) {
  const auto result = parse_reduction("abs_maen");
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, testing::HasSubstr("abs_mean"));
  EXPECT_FALSE(parse_reduction("mean_norm").ok());
}

TEST(ReductionSet, all_holds_every_kind_plain_and_absolute) {
  EXPECT_EQ(static_cast<size_t>(all_reductions().size()), 2 * reduction_kinds().size());
}

}  // namespace
}  // namespace smd
