#include "smd/rules/metric_pairs.h"

#include <gtest/gtest.h>

namespace smd::rules {
namespace {

TEST(MetricPairs, names_tell_data_metric_and_direction) {
  const auto train = parse_metric_name("train-rmse");
  ASSERT_TRUE(train.has_value());
  EXPECT_EQ(train->metric, "rmse");
  EXPECT_TRUE(train->is_training);
  EXPECT_FALSE(train->rises);
  for (const char* name : {"validation-auc", "valid-auc", "eval-auc", "test-auc"}) {
    const auto other = parse_metric_name(name);
    ASSERT_TRUE(other.has_value()) << name;
    EXPECT_FALSE(other->is_training) << name;
    EXPECT_EQ(other->metric, "auc");
  }
  EXPECT_EQ(parse_metric_name("fold_1/train-rmse")->metric, "fold_1/rmse");
}

TEST(MetricPairs, some_metrics_are_better_when_larger) {
  for (const char* metric :
       {"auc", "aucpr", "map@3", "ndcg@10-", "AUC", "accuracy", "my-accuracy"}) {
    EXPECT_TRUE(parse_metric_name("train-" + std::string(metric))->rises) << metric;
  }
  for (const char* metric : {"rmse", "logloss", "error", "mape", "merror"}) {
    EXPECT_FALSE(parse_metric_name("train-" + std::string(metric))->rises) << metric;
  }
}

TEST(MetricPairs, other_names_are_no_metrics_of_data) {
  for (const char* name : {"loss", "train", "train-", "training-rmse", "train_loss", "-rmse", ""}) {
    EXPECT_FALSE(parse_metric_name(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace smd::rules
