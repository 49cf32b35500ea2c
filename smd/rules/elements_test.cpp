#include "smd/rules/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace smd::rules {
namespace {

using testing::ElementsAre;

TEST(Elements, blocks_are_all_elements_in_order) {
  std::vector<int32_t> values(10000);
  std::iota(values.begin(), values.end(), -5);
  const OwnedTensor tensor = own(values, DType::int32, {100, 100});
  const auto numbers = to_doubles(tensor.view());
  ASSERT_TRUE(numbers.ok());
  EXPECT_TRUE(std::ranges::equal(*numbers, values));
  // Every second column, by strides.
  const int64_t shape[] = {100, 50};
  const int64_t strides[] = {400, 8};
  const auto half = to_doubles(
      {.data = tensor.data, .dtype = DType::int32, .shape = shape, .strides_bytes = strides});
  ASSERT_EQ(half->size(), 5000u);
  EXPECT_EQ(half->at(51), values[102]);
}

TEST(Elements, pairs_may_have_different_types_and_stop_early) {
  const OwnedTensor a = own(std::vector<double>(9000, 1.5), DType::float64, {9000});
  const OwnedTensor b = own(std::vector<uint8_t>(9000, 7), DType::uint8, {9000});
  size_t seen = 0;
  ASSERT_TRUE(for_each_pair(a.view(), b.view(), [&](int64_t first, auto x, auto y) {
                EXPECT_EQ(static_cast<size_t>(first), seen);
                EXPECT_EQ(x.size(), y.size());
                EXPECT_EQ(x.front(), 1.5);
                EXPECT_EQ(y.back(), 7);
                seen += x.size();
                return true;
              }).ok());
  EXPECT_EQ(seen, 9000u);
  int calls = 0;
  ASSERT_TRUE(for_each_pair(a.view(), b.view(), [&](int64_t, auto, auto) {
                ++calls;
                return false;
              }).ok());
  EXPECT_EQ(calls, 1);
}

TEST(Elements, a_real_number_beside_a_complex_one_has_no_imaginary_part) {
  const OwnedTensor a = own(std::vector<float>{1, 2, 3, 4}, DType::complex64, {2});
  const OwnedTensor b = own(std::vector<double>{5, 6}, DType::float64, {2});
  ASSERT_TRUE(for_each_pair(a.view(), b.view(), [&](int64_t, auto x, auto y) {
                EXPECT_THAT(x, ElementsAre(1, 2, 3, 4));
                EXPECT_THAT(y, ElementsAre(5, 0, 6, 0));
                return true;
              }).ok());
}

}  // namespace
}  // namespace smd::rules
