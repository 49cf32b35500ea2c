#include "smd/base/result.h"

#include <gtest/gtest.h>

#include <memory>

namespace smd {
namespace {

Result<int> half(int n) {
  if (n % 2 != 0) return Error{ErrorCode::invalid_argument, "odd"};
  return n / 2;
}

Result<int> quarter(int n) {
  SMD_TRY(const int h, half(n));
  return half(h);
}

Status check(int n) {
  SMD_RETURN_IF_ERROR(quarter(n));
  return {};
}

TEST(Result, carries_a_value_or_an_error) {
  EXPECT_EQ(*quarter(8), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_TRUE(check(4).ok());
  EXPECT_EQ(check(3).error().code, ErrorCode::invalid_argument);
}

TEST(Result, moves_values_that_cannot_be_copied) {
  Result<std::unique_ptr<int>> r = std::make_unique<int>(3);
  std::unique_ptr<int> taken = std::move(r).value();
  EXPECT_EQ(*taken, 3);
}

TEST(ResultDeathTest, asking_an_error_for_its_value_ends_the_process) {
  EXPECT_DEATH((void)half(3).value(), "");
}

}  // namespace
}  // namespace smd
