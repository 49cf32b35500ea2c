#include "smd/reduce/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "smd/reduce/internal/reduce_with.h"

namespace smd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
Histogram histogram_of(const std::vector<T>& elements, DType dtype,
                       const internal::Kernels& kernels = internal::best_kernels()) {
  const int64_t shape[] = {static_cast<int64_t>(elements.size())};
  ReductionResult result;
  EXPECT_TRUE(internal::reduce_with(kernels,
                                    {.data = elements.data(), .dtype = dtype, .shape = shape},
                                    {.histogram = true}, result)
                  .ok());
  return result.histogram;
}
Histogram histogram_of(const std::vector<double>& elements) {
  return histogram_of(elements, DType::float64);
}

// One bucket after the other, by the definition.
Histogram expected(const std::vector<double>& elements) {
  const std::vector<double>& bounds = histogram_bounds();
  std::vector<double> counts(bounds.size() - 1);
  Histogram out{.count = static_cast<int64_t>(elements.size()), .min = kInf, .max = -kInf};
  for (double x : elements) {
    if (!std::isfinite(x)) continue;
    ++out.finite_count;
    out.min = std::min(out.min, x);
    out.max = std::max(out.max, x);
    out.sum += x;
    out.sum_squares += x * x;
    if (x < bounds.front() || x > bounds.back()) continue;
    const auto after = std::upper_bound(bounds.begin(), bounds.end(), x);
    const auto bucket = std::min<size_t>(after - bounds.begin(), counts.size()) - 1;
    ++counts[bucket];
  }
  size_t first = 0;
  while (first < counts.size() && counts[first] == 0) ++first;
  if (first == counts.size()) return out;
  size_t end = counts.size();
  while (counts[end - 1] == 0) --end;
  out.limits.assign(bounds.begin() + static_cast<std::ptrdiff_t>(first),
                    bounds.begin() + static_cast<std::ptrdiff_t>(end) + 1);
  out.counts = {0};
  out.counts.insert(out.counts.end(), counts.begin() + static_cast<std::ptrdiff_t>(first),
                    counts.begin() + static_cast<std::ptrdiff_t>(end));
  return out;
}

void expect_equal(const Histogram& found, const Histogram& wanted) {
  EXPECT_EQ(found.count, wanted.count);
  EXPECT_EQ(found.finite_count, wanted.finite_count);
  EXPECT_EQ(found.limits, wanted.limits);
  EXPECT_EQ(found.counts, wanted.counts);
  if (wanted.finite_count == 0) return;
  EXPECT_EQ(found.min, wanted.min);
  EXPECT_EQ(found.max, wanted.max);
  const double scale = std::max(std::abs(wanted.min), std::abs(wanted.max));
  EXPECT_NEAR(found.sum, wanted.sum, 1e-12 * scale * static_cast<double>(wanted.count));
  EXPECT_NEAR(found.sum_squares, wanted.sum_squares, 1e-12 * (1e-300 + wanted.sum_squares));
}

TEST(Histogram, bounds_are_those_of_tensorboard) {
  const std::vector<double>& bounds = histogram_bounds();
  ASSERT_EQ(bounds.size(), 1549u);
  EXPECT_EQ(bounds.back(), 9.920775621859783e+19);
  EXPECT_EQ(bounds.front(), -9.920775621859783e+19);
  EXPECT_EQ(bounds[774], 0);
  EXPECT_EQ(bounds[775], 1e-12);
}

TEST(Histogram, holds_the_buckets_from_the_first_to_the_last) {
  const Histogram found = histogram_of({0, 0.5, 0.5, -1});
  ASSERT_EQ(found.limits.size(), 576u);
  ASSERT_EQ(found.counts.size(), 576u);
  EXPECT_EQ(found.limits.front(), -1.0089710279437536);
  EXPECT_EQ(found.counts.front(), 0);
  EXPECT_EQ(found.limits[1], -0.917246389039776);
  EXPECT_EQ(found.counts[1], 1);
  EXPECT_EQ(found.limits.back(), 0.5177616740489182);
  EXPECT_EQ(found.counts.back(), 2);
  const auto zero = std::find(found.limits.begin(), found.limits.end(), 1e-12);
  EXPECT_EQ(found.counts[static_cast<size_t>(zero - found.limits.begin())], 1);
  EXPECT_EQ(found.min, -1);
  EXPECT_EQ(found.max, 0.5);
  EXPECT_EQ(found.sum, 0);
  EXPECT_EQ(found.sum_squares, 1.5);
}

TEST(Histogram, constants_fill_one_bucket) {
  for (double constant : {0.0, -0.0, 1.0, -3.5, 5e-324, -5e-324, 1e-40}) {
    const Histogram found = histogram_of(std::vector<double>(5000, constant));
    ASSERT_EQ(found.limits.size(), 2u) << constant;
    EXPECT_LE(found.limits[0], constant);
    EXPECT_LT(constant, found.limits[1]);
    EXPECT_THAT(found.counts, ElementsAre(0, 5000));
    EXPECT_EQ(found.min, constant);
    EXPECT_EQ(found.max, constant);
    const auto narrow = static_cast<float>(constant);
    const Histogram floats = histogram_of(std::vector<float>(5000, narrow), DType::float32);
    EXPECT_THAT(floats.counts, ElementsAre(0, 5000)) << constant;
    EXPECT_EQ(floats.limits, histogram_of({double{narrow}}).limits);
  }
}

TEST(Histogram, leaves_out_what_is_not_finite) {
  const Histogram found = histogram_of({kNan, 1, kInf, -kInf, 2, kNan});
  EXPECT_EQ(found.count, 6);
  EXPECT_EQ(found.finite_count, 2);
  EXPECT_EQ(found.min, 1);
  EXPECT_EQ(found.max, 2);
  EXPECT_EQ(found.sum, 3);
  EXPECT_EQ(found.sum_squares, 5);
  double counted = 0;
  for (double count : found.counts) counted += count;
  EXPECT_EQ(counted, 2);
}

TEST(Histogram, without_numbers_in_range_has_no_buckets) {
  EXPECT_THAT(histogram_of({kNan, kInf}).limits, IsEmpty());
  const Histogram beyond = histogram_of({1e21, -1e300});
  EXPECT_THAT(beyond.limits, IsEmpty());
  EXPECT_EQ(beyond.finite_count, 2);
  EXPECT_EQ(beyond.max, 1e21);
  EXPECT_THAT(histogram_of(std::vector<double>()).limits, IsEmpty());
}

TEST(Histogram, every_bound_and_its_neighbours_find_their_bucket) {
  std::vector<double> elements;
  for (double bound : histogram_bounds()) {
    elements.insert(elements.end(),
                    {bound, std::nextafter(bound, kInf), std::nextafter(bound, -kInf)});
  }
  for (double x : elements) expect_equal(histogram_of({x}), expected({x}));
  expect_equal(histogram_of(elements), expected(elements));
  // The same bounds lie between two numbers of float32.
  constexpr auto kFloatInf = std::numeric_limits<float>::infinity();
  for (double bound : histogram_bounds()) {
    const auto near = static_cast<float>(bound);
    for (float x : {near, std::nextafter(near, kFloatInf), std::nextafter(near, -kFloatInf)}) {
      expect_equal(histogram_of(std::vector<float>{x}, DType::float32), expected({double{x}}));
    }
  }
}

TEST(Histogram, every_instruction_set_agrees_with_the_definition) {
  std::mt19937 random(3);
  std::lognormal_distribution<double> wide(0, 12);
  for (const internal::Kernels* kernels : internal::available_kernels()) {
    for (size_t size : {1, 3, 2047, 2049, 10'000}) {
      std::vector<double> doubles(size);
      std::vector<float> floats(size);
      std::vector<int32_t> ints(size);
      std::vector<int64_t> longs(size);
      for (size_t i = 0; i < size; ++i) {
        doubles[i] = (random() % 2 != 0 ? 1 : -1) * wide(random);
        floats[i] = random() % 50 == 0 ? static_cast<float>(kNan) : static_cast<float>(doubles[i]);
        ints[i] = static_cast<int32_t>(random() % 2001) - 1000;
        longs[i] = int64_t{ints[i]} << 40;
      }
      const auto check = [&](const auto& elements, DType dtype) {
        expect_equal(histogram_of(elements, dtype, *kernels),
                     expected(std::vector<double>(elements.begin(), elements.end())));
      };
      check(doubles, DType::float64);
      check(floats, DType::float32);
      check(ints, DType::int32);
      check(longs, DType::int64);
    }
  }
}

TEST(Histogram, narrow_types_count_as_the_numbers_they_are) {
  const std::vector<uint16_t> bfloat16 = {0x3f80, 0xc000, 0x7fc0};  // 1, -2, NaN
  expect_equal(histogram_of(bfloat16, DType::bfloat16), expected({1, -2, kNan}));
}

TEST(Histogram, costs_nothing_unless_asked_for) {
  const float one[] = {1};
  const int64_t shape[] = {1};
  ReductionResult result;
  result.histogram.limits = {1};
  ASSERT_TRUE(reduce({.data = one, .dtype = DType::float32, .shape = shape}, {}, result).ok());
  EXPECT_THAT(result.histogram.limits, IsEmpty());
}

}  // namespace
}  // namespace smd
