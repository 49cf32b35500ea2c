#include "smd/rules/closeness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace smd::rules {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

template <typename T>
OwnedTensor tensor(std::vector<T> values, DType dtype) {
  const auto size = static_cast<int64_t>(values.size());
  return own(std::move(values), dtype, {size});
}

Closeness compare_doubles(std::vector<double> x, std::vector<double> r,
                          const Tolerance& tolerance = {}) {
  const OwnedTensor a = tensor(std::move(x), DType::float64);
  const OwnedTensor b = tensor(std::move(r), DType::float64);
  auto result = compare(a.view(), b.view(), tolerance, Thoroughness::all);
  EXPECT_TRUE(result.ok());
  return *result;
}

// numpy.isclose(x, r), by its definition.
bool is_close(double x, double r, const Tolerance& t) {
  if (std::isnan(x) || std::isnan(r)) return t.equal_nan && std::isnan(x) && std::isnan(r);
  if (std::isinf(x) || std::isinf(r)) return x == r;
  return std::fabs(x - r) <= t.absolute + t.relative * std::fabs(r);
}

TEST(Closeness, every_pair_of_odd_numbers_is_judged_by_the_definition) {
  const std::vector<double> numbers = {0,    -0.0,   1,     1.00001, 1.0000101, -1,    1e-8,
                                       1e-9, 5e-324, 1e308, -1e308,  kInf,      -kInf, kNan};
  for (const bool equal_nan : {false, true}) {
    const Tolerance tolerance{.equal_nan = equal_nan};
    for (double x : numbers) {
      for (double r : numbers) {
        const Closeness found = compare_doubles({x}, {r}, tolerance);
        EXPECT_EQ(found.all_close(), is_close(x, r, tolerance)) << x << " " << r;
        // Beside others, and beyond the first block.
        std::vector<double> many(5000, 3.0);
        std::vector<double> same = many;
        many[4999] = x;
        same[4999] = r;
        const Closeness late = compare_doubles(many, same, tolerance);
        EXPECT_EQ(late.all_close(), found.all_close()) << x << " " << r;
        EXPECT_EQ(late.worst, found.all_close() ? -1 : 4999);
      }
    }
  }
}

TEST(Closeness, tells_the_element_furthest_beyond_its_tolerance) {
  const Closeness found = compare_doubles({1, 2.5, 100.4}, {1, 2, 100});
  EXPECT_EQ(found.differing, 2);
  EXPECT_EQ(found.worst, 1);
  EXPECT_EQ(found.value, 2.5);
  EXPECT_EQ(found.reference, 2);
  EXPECT_EQ(found.difference, 0.5);
  EXPECT_DOUBLE_EQ(found.allowed, 1e-8 + 2e-5);
  EXPECT_EQ(found.max_absolute, 0.5);
  EXPECT_EQ(found.max_relative, 0.25);
}

TEST(Closeness, integers_beyond_the_precision_of_doubles_differ) {
  const int64_t big = int64_t{1} << 60;
  const OwnedTensor a = tensor<int64_t>({big, 1}, DType::int64);
  const OwnedTensor b = tensor<int64_t>({big + 1, 1}, DType::int64);
  const auto exact = compare(a.view(), b.view(), {}, Thoroughness::all);
  EXPECT_EQ(exact->differing, 1);
  EXPECT_EQ(exact->difference, 1);
  EXPECT_TRUE(
      compare(a.view(), b.view(), {.exact_integers = false}, Thoroughness::all)->all_close());
}

TEST(Closeness, complex_numbers_differ_by_magnitude) {
  const OwnedTensor z = tensor<double>({3, 4, 0, 0}, DType::complex128);
  const int64_t shape[] = {2};
  const TensorView x{.data = z.data, .dtype = DType::complex128, .shape = shape};
  const OwnedTensor r = tensor<double>({3, 0}, DType::float64);
  const auto found = compare(x, r.view(), {}, Thoroughness::all);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->differing, 1);
  EXPECT_EQ(found->worst, 0);
  EXPECT_EQ(found->difference, 4);
  EXPECT_EQ(found->value, 5);
}

}  // namespace
}  // namespace smd::rules
