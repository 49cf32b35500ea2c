#include "smd/summary/tag.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(SummaryTag, keeps_words_and_replaces_the_rest) {
  EXPECT_EQ(summary_tag("layer1.0/conv-1_weight"), "layer1.0/conv-1_weight");
  EXPECT_EQ(summary_tag("gradient/relu:0 (x)"), "gradient/relu_0__x_");
  EXPECT_EQ(summary_tag("größe/μ²→x"), "größe/μ²_x");
  EXPECT_EQ(summary_tag("//a//b"), "a//b");
  EXPECT_EQ(summary_tag("///"), "");
  EXPECT_EQ(summary_tag(""), "");
}

TEST(SummaryTag, survives_what_is_no_text) { EXPECT_EQ(summary_tag("a\xff\x80z"), "a_z"); }

}  // namespace
}  // namespace smd
