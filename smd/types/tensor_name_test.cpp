#include "smd/types/tensor_name.h"

#include <gtest/gtest.h>

namespace smd {
namespace {

TEST(TensorName, reductions_are_mangled_and_recovered) {
  EXPECT_EQ(reduction_tensor_name("l2", true, "a/b:0"), "smdebug/reductions/abs_l2/a/b:0");
  EXPECT_EQ(parse_reduction_name("smdebug/reductions/abs_l2/a/b:0"),
            (ReductionName{"l2", true, "a/b:0"}));
  EXPECT_EQ(parse_reduction_name("tower/smdebug/reductions/min/w"),
            (ReductionName{"min", false, "w"}));
}

TEST(TensorName, ordinary_names_are_no_reductions) {
  EXPECT_FALSE(parse_reduction_name("weight").has_value());
  EXPECT_FALSE(parse_reduction_name("smdebug/reductions/min").has_value());
}

TEST(TensorName, names_that_cannot_be_stored_are_refused) {
  EXPECT_TRUE(check_tensor_name("gewicht_\u00e4").ok());
  EXPECT_FALSE(check_tensor_name("").ok());
  EXPECT_FALSE(check_tensor_name("a\xff").ok());
}

}  // namespace
}  // namespace smd
