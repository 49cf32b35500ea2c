#include "smd/trial/element_diff.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

namespace smd {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename T>
ElementDiff compare(const std::vector<T>& a, const std::vector<T>& b, DType dtype,
                    const Tolerance& tolerance = {}) {
  const Shape shape = {static_cast<int64_t>(a.size())};
  return compare_elements({.data = a.data(), .dtype = dtype, .shape = shape},
                          {.data = b.data(), .dtype = dtype, .shape = shape}, tolerance);
}

TEST(ElementDiffTest, equal_tensors_differ_nowhere) {
  const std::vector<float> x = {1, 2, 3};
  const auto found = compare(x, x, DType::float32);
  EXPECT_TRUE(found.equal());
  EXPECT_EQ(found.elements, 3);
  EXPECT_EQ(found.max_absolute, 0);
  EXPECT_EQ(found.first, -1);
  EXPECT_EQ(found.worst, -1);
}

TEST(ElementDiffTest, differences_are_counted_and_the_largest_are_kept) {
  std::vector<float> a(10'000, 4);
  auto b = a;
  b[5000] = 5;
  b[9999] = 2;
  a[7000] = 1000;
  b[7000] = 1010;
  const auto found = compare(a, b, DType::float32);
  EXPECT_EQ(found.elements, 10'000);
  EXPECT_EQ(found.differing, 3);
  EXPECT_EQ(found.max_absolute, 10);
  EXPECT_EQ(found.max_relative, 0.5);
  EXPECT_EQ(found.first, 5000);
  EXPECT_EQ(found.worst, 9999);
  EXPECT_EQ(found.worst_a, 4);
  EXPECT_EQ(found.worst_b, 2);
}

TEST(ElementDiffTest, zeros_of_both_signs_and_nans_of_any_payload_are_equal) {
  EXPECT_TRUE(compare<float>({0, NAN}, {-0.0F, -std::nanf("7")}, DType::float32).equal());
  EXPECT_TRUE(compare<uint16_t>({0x7E00, 0x0000}, {0xFE01, 0x8000}, DType::float16).equal());
}

TEST(ElementDiffTest, a_nan_against_a_number_is_infinitely_different) {
  const auto found = compare<double>({NAN, 1, NAN, 2}, {1, NAN, NAN, NAN}, DType::float64,
                                     {.absolute = kInfinity, .relative = 1});
  EXPECT_EQ(found.differing, 3);
  EXPECT_EQ(found.nan_only_in_a, 1);
  EXPECT_EQ(found.nan_only_in_b, 2);
  EXPECT_EQ(found.max_relative, kInfinity);
  EXPECT_EQ(found.first, 0);
}

TEST(ElementDiffTest, infinities_are_equal_to_themselves_alone) {
  EXPECT_TRUE(compare<double>({kInfinity}, {kInfinity}, DType::float64).equal());
  for (double other : {-kInfinity, 1e308}) {
    const auto found = compare<double>({kInfinity}, {other}, DType::float64, {.relative = 1});
    EXPECT_EQ(found.differing, 1) << other;
    EXPECT_EQ(found.max_relative, kInfinity) << other;
  }
}

TEST(ElementDiffTest, huge_finite_numbers_have_a_finite_relative_difference) {
  EXPECT_EQ(compare<double>({1.5e308}, {-1.5e308}, DType::float64).max_relative, 2);
}

TEST(ElementDiffTest, either_tolerance_suffices) {
  const std::vector<double> a = {100, 0};
  const std::vector<double> b = {101, 0.5};
  EXPECT_EQ(compare(a, b, DType::float64).differing, 2);
  EXPECT_EQ(compare(a, b, DType::float64, {.relative = 0.01}).differing, 1);
  EXPECT_EQ(compare(a, b, DType::float64, {.absolute = 0.5}).differing, 1);
  const auto both = compare(a, b, DType::float64, {.absolute = 0.5, .relative = 0.01});
  EXPECT_TRUE(both.equal());
  EXPECT_EQ(both.max_absolute, 1);
}

TEST(ElementDiffTest, large_integers_are_compared_exactly) {
  constexpr int64_t kLarge = int64_t{1} << 60;
  EXPECT_EQ(compare<int64_t>({kLarge}, {kLarge + 1}, DType::int64).max_absolute, 1);
  EXPECT_EQ(compare<int64_t>({INT64_MIN}, {INT64_MAX}, DType::int64).max_absolute, 0x1p64);
  EXPECT_EQ(compare<uint64_t>({UINT64_MAX}, {UINT64_MAX - 3}, DType::uint64).max_absolute, 3);
  EXPECT_EQ(compare<int8_t>({-128}, {127}, DType::int8).max_absolute, 255);
}

TEST(ElementDiffTest, small_floats_are_compared_as_the_numbers_they_are) {
  // 1 and 1.5, and the smallest subnormal number against zero.
  EXPECT_EQ(compare<uint16_t>({0x3C00}, {0x3E00}, DType::float16).max_absolute, 0.5);
  EXPECT_EQ(compare<uint16_t>({0x0001}, {0x0000}, DType::float16).max_absolute, 0x1p-24);
  EXPECT_EQ(compare<uint16_t>({0x7C00}, {0xFC00}, DType::float16).max_absolute, kInfinity);
  EXPECT_EQ(compare<uint16_t>({0x3F80}, {0x4040}, DType::bfloat16).max_absolute, 2);
  EXPECT_EQ(compare<uint8_t>({0x38}, {0x40}, DType::float8_e4m3fn).max_absolute, 1);
  EXPECT_EQ(compare<uint8_t>({0x3C}, {0x40}, DType::float8_e5m2).max_absolute, 1);
}

TEST(ElementDiffTest, complex_numbers_are_points_of_a_plane) {
  using Complex = std::complex<float>;
  const auto found = compare<Complex>({{3, 4}}, {{0, 0}}, DType::complex64);
  EXPECT_EQ(found.max_absolute, 5);
  EXPECT_EQ(found.worst_a, 5);
  EXPECT_TRUE(compare<Complex>({{NAN, 1}}, {{2, NAN}}, DType::complex64).equal());
  EXPECT_EQ(compare<Complex>({{NAN, 1}}, {{2, 1}}, DType::complex64).nan_only_in_a, 1);
}

TEST(ElementDiffTest, single_numbers_are_compared_alike) {
  EXPECT_TRUE(compare_numbers(NAN, NAN, {}).equal());
  EXPECT_EQ(compare_numbers(2, 1, {}).max_relative, 0.5);
  EXPECT_TRUE(compare_numbers(2, 1, {.relative = 0.5}).equal());
}

}  // namespace
}  // namespace smd
