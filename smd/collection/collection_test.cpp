#include "smd/collection/collection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/base/json.h"
#include "smd/collection/change_count.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Collection make(std::vector<std::string> include, std::vector<std::string> exclude = {}) {
  Collection collection("c");
  EXPECT_TRUE(collection.set_include_regex(include).ok());
  EXPECT_TRUE(collection.set_exclude_regex(exclude).ok());
  return collection;
}

TEST(Collection, holds_what_a_pattern_finds) {
  const Collection collection = make({"relu", "^fc"});
  EXPECT_TRUE(collection.holds("a/relu_output_0"));
  EXPECT_TRUE(collection.holds("fc.weight"));
  EXPECT_FALSE(collection.holds("conv"));
  EXPECT_EQ(collection.membership("fc.weight"), Membership::matched);
}

TEST(Collection, an_exclude_pattern_takes_names_out) {
  const Collection collection = make({"relu"}, {"input", "^x"});
  EXPECT_TRUE(collection.holds("relu_output_0"));
  EXPECT_FALSE(collection.holds("relu_input_0"));
  EXPECT_FALSE(collection.holds("x/relu_output_0"));
}

TEST(Collection, a_listed_name_wins_over_an_exclude_pattern) {
  Collection collection = make({"relu"}, {"input"});
  collection.add_tensor_name("relu_input_0");
  EXPECT_EQ(collection.membership("relu_input_0"), Membership::listed);
}

TEST(Collection, a_matched_name_leaves_when_it_is_excluded_later) {
  Collection collection = make({"relu"});
  collection.add_matched_name("relu_input_0");
  EXPECT_TRUE(collection.has_tensor_name("relu_input_0"));
  ASSERT_TRUE(collection.exclude("input").ok());
  EXPECT_FALSE(collection.holds("relu_input_0"));
  collection.add_tensor_name("relu_input_0");
  EXPECT_TRUE(collection.holds("relu_input_0")) << "listing it makes it stay";
}

TEST(Collection, names_are_sorted_and_unique) {
  Collection collection("c");
  EXPECT_TRUE(collection.empty());
  collection.set_tensor_names({"b", "a", "b"});
  collection.add_tensor_name("aa");
  EXPECT_THAT(collection.tensor_names(), ElementsAre("a", "aa", "b"));
  EXPECT_TRUE(collection.remove_tensor_name("b"));
  EXPECT_FALSE(collection.remove_tensor_name("b"));
  EXPECT_FALSE(collection.has_tensor_name("b"));
  EXPECT_FALSE(collection.empty());
}

TEST(Collection, an_invalid_pattern_is_refused_at_once) {
  Collection collection = make({"a"});
  const uint64_t before = collection.revision();
  EXPECT_EQ(collection.include("(a").error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(collection.exclude("(?a)b").error().code, ErrorCode::unsupported);
  EXPECT_FALSE(collection.set_include_regex({"b", "["}).ok());
  EXPECT_THAT(collection.include_regex(), ElementsAre("a"));
  EXPECT_EQ(collection.revision(), before);
}

TEST(Collection, every_change_raises_the_revision) {
  Collection collection("c");
  uint64_t last = collection.revision();
  uint64_t changes = ChangeCount::get();
  auto grew = [&] {
    const bool counted = std::exchange(changes, ChangeCount::get()) < ChangeCount::get();
    const bool grown = std::exchange(last, collection.revision()) < collection.revision();
    EXPECT_EQ(counted, grown) << "whoever looks at the changes of all collections sees it";
    return grown;
  };
  EXPECT_TRUE(collection.include("a").ok());
  EXPECT_TRUE(grew());
  EXPECT_TRUE(collection.exclude("b").ok());
  EXPECT_TRUE(grew());
  EXPECT_TRUE(collection.set_include_regex({}).ok());
  EXPECT_TRUE(grew());
  EXPECT_TRUE(collection.set_exclude_regex({}).ok());
  EXPECT_TRUE(grew());
  collection.add_tensor_name("n");
  EXPECT_TRUE(grew());
  collection.add_tensor_name("n");
  EXPECT_FALSE(grew()) << "nothing changed";
  collection.add_matched_name("m");
  EXPECT_FALSE(grew()) << "what the patterns find follows from them";
  collection.add_tensor_name("m");
  EXPECT_TRUE(grew());
  collection.remove_tensor_name("n");
  EXPECT_TRUE(grew());
  collection.set_tensor_names({});
  EXPECT_TRUE(grew());
  collection.set_save_config(nullptr);
  EXPECT_TRUE(grew());
  collection.set_reduction_config(nullptr);
  EXPECT_TRUE(grew());
  collection.set_save_histogram(false);
  EXPECT_TRUE(grew());
}

TEST(Collection, a_search_given_up_is_reported) {
  const Collection collection = make({"^(a+)+$"});
  std::vector<std::string> problems;
  EXPECT_EQ(collection.membership(std::string(200, 'a') + "b", &problems), Membership::none);
  EXPECT_THAT(problems, ElementsAre(HasSubstr("given up")));
}

TEST(Collection, json_has_the_documented_keys_in_order) {
  Collection collection("relu");
  ASSERT_TRUE(collection.include("relu").ok());
  collection.set_reduction_config(
      std::make_shared<ReductionConfig>(*ReductionConfig::create({.reductions = {"min", "mean"},
                                                                  .abs_reductions = {"max"},
                                                                  .norms = {"l2"},
                                                                  .abs_norms = {"l1"},
                                                                  .save_shape = true})));
  EXPECT_EQ(
      collection.to_json(),
      R"({"name": "relu", "include_regex": ["relu"], "tensor_names": [], "reduction_config": )"
      R"({"save_raw_tensor": false, "reductions": "min,mean,l2_norm,abs_max,abs_l1_norm", "save_shape": true}, )"
      R"("save_config": null, "save_histogram": true})");
}

TEST(Collection, json_reads_back) {
  Collection collection = make({"a", "b"}, {"c,d"});
  collection.set_tensor_names({" spaced ", "x"});
  collection.set_save_config(std::make_shared<SaveConfig>());
  collection.set_reduction_config(std::make_shared<ReductionConfig>(ReductionConfig::raw_only()));
  collection.set_save_histogram(false);
  const Json json = *parse_json(collection.to_json(), "");
  EXPECT_THAT(dump_json(json), HasSubstr(R"("save_histogram": false, "exclude_regex": ["c,d"]})"));
  const auto read = Collection::from_json("c", json);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, collection);
}

TEST(Collection, json_of_others_is_read_as_far_as_possible) {
  std::vector<std::string> warnings;
  const auto read = Collection::from_json(
      "c", {{"include_regex", {"(?a)x", "y"}}, {"later", 1}, {"reduction_config", {{"later", 1}}}},
      &warnings);
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(read->include_regex(), ElementsAre("(?a)x", "y"));
  EXPECT_FALSE(read->holds("x"));
  EXPECT_TRUE(read->holds("y"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("collections.c: The pattern '(?a)x'")));
  EXPECT_TRUE(read->save_histogram());
  EXPECT_EQ(read->save_config(), nullptr);
}

TEST(Collection, json_errors_name_the_key) {
  auto message = [](Json json) { return Collection::from_json("c", json).error().message; };
  EXPECT_THAT(message(3), HasSubstr("collections.c is 3"));
  EXPECT_THAT(message({{"tensor_names", {1}}}), HasSubstr("collections.c.tensor_names"));
  EXPECT_THAT(message({{"save_config", 3}}), HasSubstr("collections.c.save_config"));
  EXPECT_THAT(message({{"reduction_config", {{"reductions", "x"}}}}),
              HasSubstr("collections.c.reduction_config.reductions"));
  EXPECT_THAT(message({{"save_histogram", "?"}}), HasSubstr("collections.c.save_histogram"));
}

TEST(Collection, equality_is_by_value) {
  Collection a = make({"a"});
  Collection b = make({"a"});
  a.set_save_config(std::make_shared<SaveConfig>());
  EXPECT_FALSE(a == b);
  b.set_save_config(std::make_shared<SaveConfig>());
  EXPECT_EQ(a, b);
  a.add_matched_name("n");
  b.add_tensor_name("n");
  EXPECT_EQ(a, b);
  b.set_save_histogram(false);
  EXPECT_FALSE(a == b);
}

TEST(Collection, a_clone_has_its_own_configs) {
  Collection collection = make({"a"});
  collection.set_save_config(std::make_shared<SaveConfig>());
  Collection copy = collection.clone();
  EXPECT_EQ(copy, collection);
  ASSERT_TRUE(copy.save_config()->set_end_step(0).ok());
  EXPECT_EQ(*collection.save_config()->end_step(), std::nullopt);
}

TEST(Collection, a_config_handed_out_is_the_collections_own) {
  Collection collection("metrics");
  collection.set_save_config(std::make_shared<SaveConfig>());
  ASSERT_TRUE(collection.save_config()->set_end_step(0).ok());
  EXPECT_FALSE(collection.save_config()->should_save(Mode::train, 0));
}

TEST(Collection, the_order_in_which_names_came_does_not_matter) {
  Collection forwards("c");
  Collection backwards("c");
  for (int i = 0; i < 1000; ++i) {
    forwards.add_tensor_name("n" + std::to_string(i));
    backwards.add_tensor_name("n" + std::to_string(999 - i));
  }
  EXPECT_TRUE(forwards == backwards);
  EXPECT_EQ(forwards.to_json(), backwards.to_json());
  backwards.add_tensor_name("more");
  EXPECT_FALSE(forwards == backwards);
}

}  // namespace
}  // namespace smd
