#include "smd/rules/hit_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace smd::rules {
namespace {

using testing::ElementsAre;

Hit hit(std::string rule, std::vector<uint32_t> tensors, std::vector<uint32_t> workers = {0}) {
  return {.rule = std::move(rule), .tensors = std::move(tensors), .workers = std::move(workers)};
}

TEST(HitNews, the_same_again_is_told_ever_more_rarely) {
  HitNews news;
  std::vector<int> told;
  for (int i = 1; i <= 250; ++i) {
    if (news.is_news(hit("A", {1, 2}))) told.push_back(i);
  }
  EXPECT_THAT(told, ElementsAre(1, 10, 100));
}

TEST(HitNews, a_new_tensor_or_worker_or_rule_is_news) {
  HitNews news;
  EXPECT_TRUE(news.is_news(hit("A", {1})));
  EXPECT_FALSE(news.is_news(hit("A", {1})));
  EXPECT_TRUE(news.is_news(hit("A", {1, 2})));
  EXPECT_FALSE(news.is_news(hit("A", {2, 1})));
  EXPECT_TRUE(news.is_news(hit("A", {1}, {1})));
  EXPECT_TRUE(news.is_news(hit("B", {1})));
}

TEST(HitNews, hits_without_tensors_are_counted) {
  HitNews news;
  EXPECT_TRUE(news.is_news(hit("A", {}, {})));
  EXPECT_FALSE(news.is_news(hit("A", {}, {})));
}

}  // namespace
}  // namespace smd::rules
