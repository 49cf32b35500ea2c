#include "smd/reduce/reduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "smd/reduce/internal/kernels.h"
#include "smd/reduce/internal/reduce_with.h"

namespace smd {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The elements must outlive the call; the shape is one-dimensional.
template <typename T>
ReductionResult reduce_all(DType dtype, const std::vector<T>& values) {
  const int64_t shape[] = {static_cast<int64_t>(values.size())};
  const TensorView view{.data = values.data(), .dtype = dtype, .shape = shape};
  ReductionResult result;
  EXPECT_TRUE(reduce(view, {all_reductions(), true}, result).ok());
  return result;
}

const Number& at(const ReductionResult& result, std::string_view name) {
  static const Number kMissing;
  const Number* number = result.find(*parse_reduction(name));
  EXPECT_NE(number, nullptr) << name;
  return number == nullptr ? kMissing : *number;
}

double value(const ReductionResult& result, std::string_view name) {
  return at(result, name).to_double();
}

TEST(Reduce, float64_values_are_those_of_numpy) {
  const auto result = reduce_all<double>(DType::float64, {-3, 1, 4, 2});
  EXPECT_EQ(value(result, "min"), -3);
  EXPECT_EQ(value(result, "max"), 4);
  EXPECT_EQ(value(result, "sum"), 4);
  EXPECT_EQ(value(result, "prod"), -24);
  EXPECT_EQ(value(result, "mean"), 1);
  EXPECT_EQ(value(result, "median"), 1.5);
  EXPECT_EQ(value(result, "variance"), 6.5);
  EXPECT_EQ(value(result, "std"), std::sqrt(6.5));
  EXPECT_EQ(value(result, "l1"), 10);
  EXPECT_EQ(value(result, "l2"), std::sqrt(30.0));
  EXPECT_EQ(value(result, "abs_min"), 1);
  EXPECT_EQ(value(result, "abs_max"), 4);
  EXPECT_EQ(value(result, "abs_mean"), 2.5);
  EXPECT_EQ(value(result, "abs_variance"), 1.25);
  EXPECT_EQ(value(result, "abs_prod"), 24);
  EXPECT_EQ(value(result, "abs_l1"), 10);
}

TEST(Reduce, result_types_follow_the_element_type) {
  const std::vector<uint64_t> zeros(2);
  struct Row {
    DType dtype, min, abs_max, sum, abs_sum, mean;
  };
  using enum DType;
  for (const Row& row : {
           Row{float16, float32, float32, float32, float32, float32},
           Row{bfloat16, float32, float32, float32, float32, float32},
           Row{float8_e5m2, float32, float32, float32, float32, float32},
           Row{float32, float32, float32, float32, float32, float32},
           Row{float64, float64, float64, float64, float64, float64},
           Row{int8, int8, uint8, int64, uint64, float64},
           Row{int64, int64, uint64, int64, uint64, float64},
           Row{uint16, uint16, uint16, uint64, uint64, float64},
           Row{boolean, boolean, boolean, int64, int64, float64},
       }) {
    const auto result = reduce_all(row.dtype, zeros);
    SCOPED_TRACE(name_of(row.dtype));
    EXPECT_EQ(at(result, "min").dtype, row.min);
    EXPECT_EQ(at(result, "abs_max").dtype, row.abs_max);
    EXPECT_EQ(at(result, "sum").dtype, row.sum);
    EXPECT_EQ(at(result, "abs_prod").dtype, row.abs_sum);
    EXPECT_EQ(at(result, "mean").dtype, row.mean);
    EXPECT_EQ(at(result, "median").dtype, row.mean);
    EXPECT_EQ(at(result, "l2").dtype, row.mean);
  }
}

TEST(Reduce, the_most_negative_integer_has_an_absolute_value) {
  EXPECT_EQ(value(reduce_all<int8_t>(DType::int8, {-128, 3}), "abs_max"), 128);
  EXPECT_EQ(value(reduce_all<int8_t>(DType::int8, {-128}), "abs_median"), 128);
  EXPECT_EQ(value(reduce_all<int32_t>(DType::int32, {INT32_MIN}), "abs_min"), 2147483648.0);
  const auto wide = reduce_all<int64_t>(DType::int64, {INT64_MIN});
  EXPECT_EQ(value(wide, "abs_max"), 0x1p63);
  EXPECT_EQ(value(wide, "abs_sum"), 0x1p63);
  EXPECT_EQ(value(wide, "l1"), 0x1p63);
}

TEST(Reduce, integer_sums_and_products_wrap) {
  const auto result = reduce_all<int64_t>(DType::int64, {INT64_MAX, 1, 3});
  EXPECT_EQ(load_le<int64_t>(at(result, "sum").bits.data()), INT64_MIN + 3);
  EXPECT_EQ(load_le<int64_t>(at(result, "prod").bits.data()), INT64_MAX - 2);
  EXPECT_NEAR(value(result, "mean"), 0x1p63 / 3, 1e4);
}

TEST(Reduce, every_reduction_of_a_nan_is_nan) {
  const auto result = reduce_all<float>(DType::float32, {1, NAN, 0, INFINITY});
  for (const auto& [reduction, number] : result.values) {
    EXPECT_TRUE(std::isnan(number.to_double())) << reduction.name();
  }
  EXPECT_EQ(result.nan_count, 1);
  EXPECT_EQ(result.inf_count, 1);
  EXPECT_EQ(result.zero_count, 1);
}

TEST(Reduce, infinities_behave_as_in_numpy) {
  const auto one = reduce_all<double>(DType::float64, {1, -kInf, 2});
  EXPECT_EQ(value(one, "min"), -kInf);
  EXPECT_EQ(value(one, "max"), 2);
  EXPECT_EQ(value(one, "sum"), -kInf);
  EXPECT_EQ(value(one, "mean"), -kInf);
  EXPECT_EQ(value(one, "l2"), kInf);
  EXPECT_EQ(value(one, "prod"), -kInf);
  EXPECT_TRUE(std::isnan(value(one, "std")));
  EXPECT_TRUE(std::isnan(value(reduce_all<double>(DType::float64, {kInf, -kInf}), "sum")));
  EXPECT_TRUE(std::isnan(value(reduce_all<double>(DType::float64, {kInf, 0}), "prod")));
}

TEST(Reduce, squares_beyond_float64_do_not_spoil_norms_and_deviations) {
  const auto large = reduce_all<double>(DType::float64, {3e300, -4e300});
  EXPECT_DOUBLE_EQ(value(large, "l2"), 5e300);
  EXPECT_DOUBLE_EQ(value(large, "std"), 3.5e300);
  EXPECT_EQ(value(large, "variance"), kInf);
  const auto small = reduce_all<double>(DType::float64, {3e-300, -4e-300});
  EXPECT_DOUBLE_EQ(value(small, "l2"), 5e-300);
  EXPECT_DOUBLE_EQ(value(small, "std"), 3.5e-300);
  const auto alternating =
      reduce_all<double>(DType::float64, {1.5e308, -1.5e308, 1.5e308, -1.5e308});
  EXPECT_EQ(value(alternating, "sum"), 0);
}

TEST(Reduce, a_product_does_not_depend_on_the_order_of_its_factors) {
  EXPECT_EQ(value(reduce_all<double>(DType::float64, {1e300, 1e300, 0, 1e300}), "prod"), 0);
  const std::vector<double> up_and_down = {1e200, 1e200, 1e200, 1e-200, 1e-200, 1e-200};
  EXPECT_DOUBLE_EQ(value(reduce_all(DType::float64, up_and_down), "prod"), 1);
  EXPECT_EQ(value(reduce_all<float>(DType::float32, {1e30f, 1e30f, -1e30f}), "prod"), -kInf);
  EXPECT_DOUBLE_EQ(value(reduce_all<double>(DType::float64, {5e-324, 0x1p1000}), "prod"), 0x1p-74);
}

TEST(Reduce, variance_survives_a_distant_mean) {
  std::vector<double> values(10000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = 1e9 + static_cast<double>(i % 2);
  const auto result = reduce_all(DType::float64, values);
  EXPECT_EQ(value(result, "variance"), 0.25);
  EXPECT_EQ(value(result, "abs_std"), 0.5);
  EXPECT_EQ(value(result, "sum"), 1e13 + 5000);
  const std::vector<double> same(5000, 0.1);
  EXPECT_EQ(value(reduce_all(DType::float64, same), "std"), 0);
}

TEST(Reduce, complex_numbers_have_norms_and_absolute_reductions_only) {
  const auto result = reduce_all<std::complex<float>>(DType::complex64, {{3, 4}, {0, 0}, {-6, 8}});
  for (const auto& [reduction, number] : result.values) {
    EXPECT_TRUE(reduction.abs() || reduction.kind().is_norm) << reduction.name();
  }
  EXPECT_EQ(result.find(*parse_reduction("mean")), nullptr);
  EXPECT_EQ(value(result, "abs_max"), 10);
  EXPECT_EQ(value(result, "abs_mean"), 5);
  EXPECT_EQ(value(result, "l1"), 15);
  EXPECT_EQ(at(result, "l2").dtype, DType::float32);
  EXPECT_EQ(result.zero_count, 1);
  const auto wide = reduce_all<std::complex<double>>(DType::complex128, {{3e300, 4e300}});
  EXPECT_DOUBLE_EQ(value(wide, "abs_l2"), 5e300);
}

TEST(Reduce, values_come_in_the_order_of_the_set) {
  const auto result = reduce_all<float>(DType::float32, {1, 2});
  std::vector<uint8_t> ids;
  for (const auto& [reduction, number] : result.values) ids.push_back(reduction.id());
  EXPECT_EQ(ids.size(), 2 * reduction_kinds().size());
  EXPECT_TRUE(std::ranges::is_sorted(ids));
}

TEST(Reduce, a_tensor_without_elements_gives_no_values) {
  ReductionResult result = reduce_all<float>(DType::float32, {0, NAN});
  const int64_t shape[] = {3, 0};
  ASSERT_TRUE(reduce({.shape = shape}, {all_reductions(), true}, result).ok());
  EXPECT_TRUE(result.values.empty());
  EXPECT_EQ(result.nan_count + result.zero_count, 0);
}

TEST(Reduce, a_scalar_is_one_element) {
  const float x = -2;
  ReductionResult result;
  ASSERT_TRUE(reduce({.data = &x, .shape = {}}, {all_reductions()}, result).ok());
  EXPECT_EQ(value(result, "sum"), -2);
  EXPECT_EQ(value(result, "std"), 0);
}

TEST(Reduce, strings_are_refused) {
  const int64_t shape[] = {1};
  ReductionResult result;
  const Status status = reduce({.data = shape, .dtype = DType::string, .shape = shape}, {}, result);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::invalid_argument);
}

// Rows 1, 3, 5, … of a matrix from the last to the first, every third column.
TEST(Reduce, strided_and_swapped_views_give_what_their_copies_give) {
  constexpr int64_t kRows = 200;
  constexpr int64_t kColumns = 120;
  std::vector<float> matrix(kRows * kColumns);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = std::sin(static_cast<float>(i));
  std::vector<float> copy;
  for (int64_t row = kRows - 1; row > 0; row -= 2) {
    for (int64_t column = 0; column < kColumns; column += 3) {
      copy.push_back(matrix[static_cast<size_t>(row * kColumns + column)]);
    }
  }
  const auto expected = reduce_all(DType::float32, copy);
  const int64_t shape[] = {kRows / 2, kColumns / 3};
  const int64_t strides[] = {-2 * kColumns * 4, 3 * 4};
  TensorView view{
      .data = &matrix[(kRows - 1) * kColumns], .shape = shape, .strides_bytes = strides};
  ReductionResult result;
  ASSERT_TRUE(reduce(view, {all_reductions(), true}, result).ok());
  EXPECT_EQ(result.values, expected.values);

  for (float& x : matrix) x = std::bit_cast<float>(__builtin_bswap32(std::bit_cast<uint32_t>(x)));
  view.swapped = true;
  ASSERT_TRUE(reduce(view, {all_reductions(), true}, result).ok());
  EXPECT_EQ(result.values, expected.values);
}

TEST(Reduce, a_broadcast_view_counts_its_element_often) {
  const double x = 0.1;
  const int64_t shape[] = {3000};
  const int64_t strides[] = {0};
  ReductionResult result;
  const TensorView view{
      .data = &x, .dtype = DType::float64, .shape = shape, .strides_bytes = strides};
  ASSERT_TRUE(reduce(view, {all_reductions()}, result).ok());
  EXPECT_NEAR(value(result, "sum"), 300, 1e-11);
  EXPECT_EQ(value(result, "variance"), 0);
}

TEST(Reduce, the_result_is_reused_without_allocating) {
  ReductionResult result = reduce_all<float>(DType::float32, {1, 2});
  const auto* memory = result.values.data();
  const float x = 3;
  ASSERT_TRUE(reduce({.data = &x, .shape = {}}, {all_reductions()}, result).ok());
  EXPECT_EQ(result.values.data(), memory);
}

TEST(ContainsNan, finds_one_wherever_it_is) {
  std::vector<float> values(10000, 1.0f);
  const int64_t shape[] = {10000};
  const TensorView view{.data = values.data(), .shape = shape};
  EXPECT_FALSE(*contains_nan(view));
  for (size_t i : {size_t{0}, size_t{5000}, size_t{9999}}) {
    values[i] = -NAN;
    EXPECT_TRUE(*contains_nan(view));
    values[i] = -INFINITY;
    EXPECT_FALSE(*contains_nan(view));
  }
}

TEST(ContainsNan, sees_either_part_of_a_complex_number) {
  const std::complex<double> z{kInf, kNan};
  EXPECT_TRUE(*contains_nan({.data = &z, .dtype = DType::complex128, .shape = {}}));
}

TEST(ContainsNan, integers_have_none) {
  const int64_t all_bits = -1;
  EXPECT_FALSE(*contains_nan({.data = &all_bits, .dtype = DType::int64, .shape = {}}));
}

TEST(Kernels, the_best_instruction_set_is_among_the_available) {
  const auto available = internal::available_kernels();
  EXPECT_THAT(available, testing::Contains(&internal::best_kernels()));
  EXPECT_GE(available.size(), 2u);
}

}  // namespace
}  // namespace smd
