#include "smd/collection/collection_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "smd/base/json.h"
#include "smd/collection/change_count.h"

namespace smd {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

constexpr std::string_view kFile =
    R"({"collections": {"losses": {"name": "losses", "include_regex": ["[Ll]oss_(?!input).*output"], )"
    R"("tensor_names": ["CrossEntropyLoss_output_0"], "reduction_config": {"save_raw_tensor": true, )"
    R"("reductions": "", "save_shape": false}, "save_config": {)"
    R"("TRAIN": {"save_interval": 10, "save_steps": [], "start_step": 0, "end_step": null}, )"
    R"("EVAL": {"save_interval": 1, "save_steps": [3, 7], "start_step": 0, "end_step": 100}, )"
    R"("PREDICT": {"save_interval": 500, "save_steps": [], "start_step": 0, "end_step": null}, )"
    R"("GLOBAL": {"save_interval": 500, "save_steps": [], "start_step": 0, "end_step": null}}, )"
    R"("save_histogram": false}, "relu": {"name": "relu", "include_regex": ["relu"], "tensor_names": [], )"
    R"("reduction_config": {"save_raw_tensor": false, "reductions": "min,mean,l2_norm,abs_max,abs_l1_norm", )"
    R"("save_shape": true}, "save_config": null, "save_histogram": true}}, "_meta": {"num_workers": 1}})";

TEST(CollectionSet, keeps_the_order_of_creation) {
  CollectionSet set;
  for (const char* name : {"z", "a", "m", "a"}) ASSERT_TRUE(set.create(name).ok());
  EXPECT_THAT(set.names(), ElementsAre("z", "a", "m"));
  EXPECT_EQ(*set.create("a"), *set.get("a")) << "the same object";
  EXPECT_EQ(set.find("b"), nullptr);
}

TEST(CollectionSet, adding_replaces_in_place) {
  CollectionSet set;
  ASSERT_TRUE(set.create("a").ok());
  ASSERT_TRUE(set.create("b").ok());
  auto mine = std::make_shared<Collection>("a");
  ASSERT_TRUE(set.add(mine).ok());
  EXPECT_EQ(set.find("a"), mine);
  EXPECT_THAT(set.names(), ElementsAre("a", "b"));
}

TEST(CollectionSet, an_absent_collection_gets_the_nearest_choice) {
  CollectionSet set;
  ASSERT_TRUE(set.create("gradients").ok());
  const auto found = set.get("gradient");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::not_found);
  EXPECT_EQ(found.error().message, "There is no collection 'gradient'. Did you mean 'gradients'?");
}

TEST(CollectionSet, refuses_an_empty_name_and_no_workers) {
  CollectionSet set;
  EXPECT_FALSE(set.create("").ok());
  EXPECT_FALSE(set.set_num_workers(0).ok());
}

TEST(CollectionSet, revision_only_grows) {
  CollectionSet set;
  uint64_t last = set.revision();
  uint64_t changes = ChangeCount::get();
  auto grew = [&] {
    const bool counted = std::exchange(changes, ChangeCount::get()) < ChangeCount::get();
    const bool grown = std::exchange(last, set.revision()) < set.revision();
    EXPECT_EQ(counted, grown) << "whoever looks at the changes of all collections sees it";
    return grown;
  };
  auto a = *set.create("a");
  EXPECT_TRUE(grew());
  EXPECT_FALSE(grew());
  for (int i = 0; i < 5; ++i) a->add_tensor_name(std::string(1, static_cast<char>('a' + i)));
  EXPECT_TRUE(grew());
  ASSERT_TRUE(set.add(std::make_shared<Collection>("a")).ok());
  EXPECT_TRUE(grew()) << "although the new one has a lower revision";
  ASSERT_TRUE(set.set_num_workers(2).ok());
  EXPECT_TRUE(grew());
}

TEST(CollectionSet, reads_the_file_and_writes_it_again_byte_for_byte) {
  const auto set = CollectionSet::from_json(kFile, "x.json");
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->to_json(), kFile);
  const auto losses = *set->get("losses");
  EXPECT_TRUE(losses->holds("CrossEntropyLoss_output_0"));
  EXPECT_TRUE(losses->save_config()->should_save(Mode::eval, 3));
  EXPECT_EQ((*set->get("relu"))->reduction_config()->set().size(), 5);
  EXPECT_EQ(set->num_workers(), 1);
}

TEST(CollectionSet, an_empty_set_is_a_valid_file) {
  EXPECT_EQ(CollectionSet().to_json(), R"({"collections": {}, "_meta": {"num_workers": 1}})");
  EXPECT_TRUE(CollectionSet::from_json(CollectionSet().to_json(), "").ok());
}

TEST(CollectionSet, builds_the_documented_file_from_scratch) {
  CollectionSet set;
  auto losses = *set.create("losses");
  ASSERT_TRUE(losses->include("[Ll]oss_(?!input).*output").ok());
  losses->add_matched_name("CrossEntropyLoss_output_0");
  losses->set_reduction_config(std::make_shared<ReductionConfig>(ReductionConfig::raw_only()));
  auto save_config = std::make_shared<SaveConfig>();
  ASSERT_TRUE(save_config->set_mode(Mode::train, SaveConfigMode{.save_interval = 10}).ok());
  ASSERT_TRUE(
      save_config
          ->set_mode(Mode::eval,
                     SaveConfigMode{.save_interval = 1, .end_step = 100, .save_steps = {7, 3}})
          .ok());
  losses->set_save_config(save_config);
  losses->set_save_histogram(false);
  auto relu = *set.create("relu");
  ASSERT_TRUE(relu->include("relu").ok());
  relu->set_reduction_config(
      std::make_shared<ReductionConfig>(*ReductionConfig::create({.reductions = {"min", "mean"},
                                                                  .abs_reductions = {"max"},
                                                                  .norms = {"l2"},
                                                                  .abs_norms = {"l1"},
                                                                  .save_shape = true})));
  EXPECT_EQ(set.to_json(), kFile);
}

TEST(CollectionSet, further_keys_inside_are_ignored) {
  const auto set = CollectionSet::from_json(
      R"({"collections": {"a": {"name": "a", "later": [1]}}, "_meta": {"num_workers": "3", "later": 1}})",
      "");
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->num_workers(), 3);
}

TEST(CollectionSet, other_top_level_keys_are_refused) {
  const auto set = CollectionSet::from_json(R"({"collections": {}, "_mete": {}})", "/run/x.json");
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(set.error().message,
              AllOf(HasSubstr("'_mete'"), EndsWith("Did you mean '_meta'? See /run/x.json.")));
}

TEST(CollectionSet, errors_end_with_the_file_name) {
  for (const char* text : {"[]", "{", R"({"collections": []})", R"({"collections": {"a": 1}})",
                           R"({"_meta": {"num_workers": 0}})", R"({"_meta": {"num_workers": "x"}})",
                           R"({"_meta": 1})", R"({"collections": {"": {}}})"}) {
    const auto set = CollectionSet::from_json(text, "x.json");
    ASSERT_FALSE(set.ok()) << text;
    EXPECT_EQ(set.error().code, ErrorCode::invalid_argument);
    EXPECT_THAT(set.error().message, EndsWith(", in x.json."));
  }
}

TEST(CollectionSet, a_pattern_of_another_program_does_not_spoil_the_file) {
  std::vector<std::string> warnings;
  constexpr std::string_view kText =
      R"({"collections": {"a": {"name": "a", "include_regex": ["(?a)\\w"], "tensor_names": ["t"], )"
      R"("reduction_config": null, "save_config": null, "save_histogram": true}}, "_meta": {"num_workers": 1}})";
  const auto set = CollectionSet::from_json(kText, "", &warnings);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_EQ(set->to_json(), kText);
}

TEST(CollectionSet, equality_compares_collections_only) {
  auto a = CollectionSet::from_json(kFile, "");
  auto b = CollectionSet::from_json(kFile, "");
  ASSERT_TRUE(b->set_num_workers(4).ok());
  EXPECT_EQ(*a, *b);
  (*b->get("relu"))->add_tensor_name("x");
  EXPECT_FALSE(*a == *b);
}

}  // namespace
}  // namespace smd
