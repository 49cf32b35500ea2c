#include "smd/collection/builtin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd {
namespace {

using testing::ElementsAre;

TEST(Builtin, sets_hold_the_documented_names) {
  for (const char* name :
       {"losses", "metrics", "sm_metrics", "feature_importance", "average_shap"}) {
    EXPECT_TRUE(is_scalar_collection(name)) << name;
  }
  for (const char* name : {"weights", "full_shap", "scalars", "all", ""}) {
    EXPECT_FALSE(is_scalar_collection(name)) << name;
  }
  for (const char* name : {"losses", "metrics", "sm_metrics"})
    EXPECT_TRUE(is_metric_collection(name));
  EXPECT_FALSE(is_metric_collection("average_shap"));
  EXPECT_TRUE(is_training_collection("gradients"));
  EXPECT_TRUE(is_training_collection("optimizer_variables"));
  EXPECT_FALSE(is_training_collection("weights"));
  EXPECT_EQ(collection_keys::kSearchableScalars, "sm_metrics");
}

TEST(Builtin, plain_collections_sort_the_tensors_of_a_model) {
  CollectionSet set;
  ASSERT_TRUE(add_builtin_collections(set, plain_collections()).ok());
  EXPECT_THAT(set.names(),
              ElementsAre("all", "default", "weights", "biases", "gradients", "losses"));
  auto holders = [&](std::string_view name) {
    std::vector<std::string> names;
    for (const auto& collection : set.collections()) {
      if (collection->holds(name)) names.push_back(collection->name());
    }
    return names;
  };
  EXPECT_THAT(holders("conv1.weight"), ElementsAre("weights"));
  EXPECT_THAT(holders("conv1.bias"), ElementsAre("biases"));
  EXPECT_THAT(holders("gradient/conv1.bias"), ElementsAre("gradients"));
  EXPECT_THAT(holders("CrossEntropyLoss_output_0"), ElementsAre("losses"));
  EXPECT_THAT(holders("relu_output_0"), ElementsAre());
}

TEST(Builtin, default_collections_are_registered_ones) {
  CollectionSet set;
  ASSERT_TRUE(add_builtin_collections(set, plain_collections()).ok());
  for (const std::string& name : plain_default_collections()) EXPECT_NE(set.find(name), nullptr);
}

TEST(Builtin, an_invalid_pattern_in_a_table_is_an_error) {
  CollectionSet set;
  const BuiltinCollection table[] = {{.name = "a", .patterns = {"("}}};
  EXPECT_FALSE(add_builtin_collections(set, table).ok());
}

}  // namespace
}  // namespace smd
