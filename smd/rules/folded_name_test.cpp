#include "smd/rules/folded_name.h"

#include <gtest/gtest.h>

namespace smd::rules {
namespace {

TEST(FoldedName, case_and_underscores_do_not_matter) {
  EXPECT_EQ(folded_name("VanishingGradient"), "vanishinggradient");
  EXPECT_EQ(folded_name("vanishing_gradient"), "vanishinggradient");
  EXPECT_EQ(folded_name("NLP_SequenceRatio_2"), "nlpsequenceratio2");
  EXPECT_EQ(folded_name("_"), "");
}

}  // namespace
}  // namespace smd::rules
