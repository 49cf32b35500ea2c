#include "smd/collection/matcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::shared_ptr<Collection> make(std::string name, std::vector<std::string> patterns) {
  auto collection = std::make_shared<Collection>(std::move(name));
  EXPECT_TRUE(collection->set_include_regex(patterns).ok());
  return collection;
}

TEST(Matcher, gives_the_collections_in_their_order) {
  Matcher matcher({make("all", {".*"}), make("weights", {"weight"}), make("fc", {"^fc"})});
  EXPECT_THAT(matcher.match("fc.weight").collections, ElementsAre(0, 1, 2));
  EXPECT_THAT(matcher.match("fc.bias").collections, ElementsAre(0, 2));
  EXPECT_EQ(matcher.collection(2).name(), "fc");
  EXPECT_EQ(matcher.size(), 3u);
}

TEST(Matcher, a_name_nobody_holds_matches_nothing) {
  Matcher matcher({make("weights", {"weight"}), make("empty", {})});
  EXPECT_TRUE(matcher.match("bias").empty());
  EXPECT_TRUE(Matcher({}).match("bias").empty());
}

TEST(Matcher, names_found_by_pattern_join_the_collection) {
  auto weights = make("weights", {"weight"});
  auto listed = make("listed", {});
  listed->add_tensor_name("fc.weight");
  Matcher matcher({weights, listed});
  EXPECT_THAT(matcher.match("fc.weight").collections, ElementsAre(0, 1));
  matcher.match("fc.bias");
  EXPECT_THAT(weights->tensor_names(), ElementsAre("fc.weight"));
  EXPECT_THAT(listed->tensor_names(), ElementsAre("fc.weight"));
}

TEST(Matcher, matching_does_not_make_it_forget) {
  Matcher matcher({make("weights", {"weight"})});
  const NameMatch* first = &matcher.match("a.weight");
  matcher.match("b.weight");
  matcher.match("c.bias");
  EXPECT_EQ(&matcher.match("a.weight"), first);
  EXPECT_EQ(matcher.generation(), 0u);
}

TEST(Matcher, equal_sets_share_one_match) {
  Matcher matcher({make("weights", {"weight"}), make("all", {".*"})});
  EXPECT_EQ(&matcher.match("a.weight"), &matcher.match("b.weight"));
  EXPECT_EQ(matcher.match("a.weight").id, 0u);
  EXPECT_EQ(matcher.match("a.bias").id, 1u);
  EXPECT_EQ(matcher.distinct_matches(), 2u);
}

TEST(Matcher, a_pattern_added_later_counts) {
  auto weights = make("weights", {"weight"});
  Matcher matcher({weights});
  EXPECT_TRUE(matcher.match("fc.bias").empty());
  ASSERT_TRUE(weights->include("bias").ok());
  EXPECT_THAT(matcher.match("fc.bias").collections, ElementsAre(0));
  EXPECT_EQ(matcher.generation(), 1u);
}

TEST(Matcher, an_exclusion_added_later_counts) {
  auto weights = make("weights", {"weight"});
  Matcher matcher({weights});
  EXPECT_FALSE(matcher.match("fc.weight").empty());
  ASSERT_TRUE(weights->exclude("^fc").ok());
  EXPECT_TRUE(matcher.match("fc.weight").empty());
  EXPECT_THAT(weights->tensor_names(), ElementsAre("fc.weight")) << "it was saved before";
}

TEST(Matcher, a_name_listed_later_counts) {
  auto mine = make("mine", {});
  Matcher matcher({mine});
  EXPECT_TRUE(matcher.match("x").empty());
  mine->add_tensor_name("x");
  EXPECT_FALSE(matcher.match("x").empty());
}

TEST(Matcher, searches_given_up_are_reported_once) {
  Matcher matcher({make("slow", {"^(a+)+$"})});
  const std::string name = std::string(200, 'a') + "b";
  EXPECT_TRUE(matcher.match(name).empty());
  EXPECT_TRUE(matcher.match(name).empty());
  EXPECT_THAT(matcher.take_problems(), ElementsAre(HasSubstr("'^(a+)+$'")));
  EXPECT_THAT(matcher.take_problems(), IsEmpty());
}

TEST(Matcher, many_names_keep_their_matches) {
  Matcher matcher({make("even", {"[02468]$"}), make("all", {""})});
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 5000; ++i) {
      ASSERT_EQ(matcher.match("tensor_" + std::to_string(i)).collections.size(),
                i % 2 == 0 ? 2u : 1u);
    }
  }
  EXPECT_EQ(matcher.distinct_matches(), 2u);
}

}  // namespace
}  // namespace smd
