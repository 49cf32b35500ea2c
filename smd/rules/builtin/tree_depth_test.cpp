#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/rule_case.h"

namespace smd::rules {
namespace {

using testing::HasSubstr;

constexpr std::string_view kRule = "TreeDepth";

std::string nodes_up_to(int last, const std::string& where = "0") {
  std::string out = "trees/Node@" + where + "=[0";
  for (int i = 1; i <= last; ++i) out += fmt::format(",{}", i);
  return out + "]";
}

// A chain of four nodes in the order of creation: 0 -> 2 -> 4 -> 6, each with a leaf beside it.
constexpr std::string_view kChain =
    "trees/Tree@0:int64=[0,0,0,0,0,0,0]; trees/Node@0:int64=[0,1,2,3,4,5,6];"
    "trees/Yes@0:str=[0-1,nan,0-3,nan,0-5,nan,nan];"
    "trees/No@0:str=[0-2,nan,0-4,nan,0-6,nan,nan]";

TEST(TreeDepth, fires_at_a_full_tree_of_depth_five) { expect_fires(kRule, nodes_up_to(62), 0); }

TEST(TreeDepth, accepts_a_full_tree_of_depth_four) { expect_silent(kRule, nodes_up_to(30)); }

TEST(TreeDepth, a_single_node_has_no_depth) {
  expect_silent(kRule, "trees/Node@0=[0]", {.parameters = {{"depth", 0}}});
  expect_fires(kRule, "trees/Node@0=[0,1,2]", 0, {.parameters = {{"depth", "0"}}});
}

TEST(TreeDepth, the_largest_id_is_enough) {
  expect_fires(kRule, "trees/Node~max@7=62", 7);
  expect_fires(kRule, "tree/Node@7:int32=[0,31,32]", 7);
  EXPECT_THAT(judge(kRule, "trees/Node~mean@7=62").missing.value_or(""), HasSubstr("max"));
}

TEST(TreeDepth, tells_tree_and_depths) {
  const Verdict verdict = judge(kRule,
                                "trees/Tree@2=[3,3,4,4,4]; trees/Node@2=[0,1,0,40,80];"
                                "trees/Yes@2=[1,nan,40,80,nan]; trees/No@2=[nan,nan,nan,nan,nan]");
  const Violation& hit = verdict.hits.at(0).violations.at(0);
  EXPECT_EQ(hit.value, 6);
  EXPECT_EQ(hit.threshold, 4);
  EXPECT_EQ(hit.context["largest_node"], 80);
  EXPECT_EQ(hit.context["tree"], 4);
  EXPECT_EQ(hit.context["true_depth"], 2);
  EXPECT_EQ(verdict.hits[0].message, "Tree 4 is 6 levels deep; 4 are accepted.");
}

TEST(TreeDepth, links_give_the_true_depth) {
  // The largest id is 6, which a full tree of depth 2 has.
  expect_silent(kRule, kChain, {.parameters = {{"depth", 2}}});
  expect_fires(kRule, kChain, 0, {.parameters = {{"depth", 2}, {"method", "links"}}});
  expect_silent(kRule, kChain, {.parameters = {{"depth", 3}, {"method", "links"}}});
}

TEST(TreeDepth, links_that_lead_nowhere_or_back_are_not_followed) {
  const CaseOptions links{.parameters = {{"depth", 2}, {"method", "links"}}};
  expect_silent(kRule, "trees/Node@0=[0,1]; trees/Yes@0=[1,0]; trees/No@0=[9,1]", links);
  EXPECT_THAT(judge(kRule, "trees/Node@0=[0,1]; trees/Yes@0=[1]; trees/No@0=[2,3]", links).error,
              HasSubstr("must be as many"));
}

TEST(TreeDepth, tells_what_it_needs) {
  EXPECT_THAT(judge(kRule, "x@0=1").missing.value_or(""), HasSubstr("nodes of trees"));
  EXPECT_THAT(
      judge(kRule, nodes_up_to(62), {.parameters = {{"method", "links"}}}).missing.value_or(""),
      HasSubstr("trees/Yes"));
}

TEST(TreeDepth, bad_parameters_are_refused) {
  EXPECT_THAT(creation_error(kRule, {{"depth", "-1"}}), HasSubstr("at least 0"));
  EXPECT_THAT(creation_error(kRule, {{"method", "guess"}}), HasSubstr("one of ids, links"));
}

}  // namespace
}  // namespace smd::rules
