#include "smd/rules/statistic.h"

#include <gtest/gtest.h>

#include <limits>

namespace smd::rules {
namespace {

using enum Statistic;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Statistics stored(std::initializer_list<std::pair<Statistic, double>> numbers) {
  Statistics out{};
  for (const auto& [statistic, number] : numbers) out.set(statistic, number);
  return out;
}

std::optional<double> derived(Statistic wanted, Statistics from, const Shape* shape = nullptr) {
  derive({wanted}, shape, from);
  return from.has(wanted) ? std::optional(from[wanted]) : std::nullopt;
}

TEST(Statistic, every_reduction_is_one) {
  all_reductions().for_each([](Reduction reduction) {
    const auto found = find_statistic(reduction.name());
    ASSERT_TRUE(found.has_value()) << reduction.name();
    EXPECT_EQ(name_of(*found), reduction.name());
    EXPECT_EQ(reduction_of(*found), reduction);
  });
  EXPECT_EQ(find_statistic("l2_norm"), l2);
  EXPECT_EQ(find_statistic("nan_count"), nan_count);
  EXPECT_EQ(reduction_of(nan_count), std::nullopt);
  EXPECT_EQ(find_statistic("nothing"), std::nullopt);
}

TEST(Statistic, the_mean_of_magnitudes_follows_from_l1_of_a_vector) {
  const Shape vector = {4};
  const Shape matrix = {2, 2};
  const Shape empty = {0};
  EXPECT_EQ(derived(abs_mean, stored({{l1, 2}}), &vector), 0.5);
  EXPECT_EQ(derived(abs_mean, stored({{l1, 2}}), &matrix), std::nullopt);
  EXPECT_EQ(derived(abs_mean, stored({{l1, 2}}), &empty), std::nullopt);
  EXPECT_EQ(derived(abs_mean, stored({{l1, 2}})), std::nullopt);
  EXPECT_EQ(derived(abs_mean, stored({{mean, 2}}), &vector), std::nullopt);
}

TEST(Statistic, variance_and_deviation_follow_from_each_other) {
  EXPECT_EQ(derived(variance, stored({{std, 3}})), 9);
  EXPECT_EQ(derived(std, stored({{variance, 9}})), 3);
  EXPECT_EQ(derived(variance, stored({{mean, 3}})), std::nullopt);
}

TEST(Statistic, non_finite_elements_show_in_both_extrema_and_nothing_else) {
  EXPECT_EQ(derived(nonfinite, stored({{min, 0}, {max, kInf}})), 1);
  EXPECT_EQ(derived(nonfinite, stored({{min, -kInf}, {max, 0}})), 1);
  EXPECT_EQ(derived(nonfinite, stored({{min, kNan}, {max, kNan}})), 1);
  EXPECT_EQ(derived(nonfinite, stored({{min, 0}, {max, 1}})), 0);
  EXPECT_EQ(derived(nonfinite, stored({{abs_max, kInf}})), 1);
  EXPECT_EQ(derived(nonfinite, stored({{max, 1}})), std::nullopt);
  EXPECT_EQ(derived(nonfinite, stored({{mean, kInf}, {sum, kInf}, {l2, kInf}})), std::nullopt);
  EXPECT_EQ(derived(has_nan, stored({{max, 1}})), 0);
  EXPECT_EQ(derived(has_nan, stored({{min, kNan}})), 1);
  EXPECT_EQ(derived(has_nan, stored({{min, 0}, {max, kInf}})), 0);
  EXPECT_EQ(derived(nan_count, stored({{min, 0}, {max, 1}})), 0);
  EXPECT_EQ(derived(nan_count, stored({{min, kNan}, {max, kNan}})), std::nullopt);
}

TEST(Statistic, zeros_show_in_the_extrema) {
  const Shape shape = {2, 3};
  EXPECT_EQ(derived(all_zero, stored({{abs_max, 0}})), 1);
  EXPECT_EQ(derived(all_zero, stored({{min, 0}, {max, 0}})), 1);
  EXPECT_EQ(derived(all_zero, stored({{min, 0}, {max, 1}})), 0);
  EXPECT_EQ(derived(all_zero, stored({{min, 0}})), std::nullopt);
  EXPECT_EQ(derived(zero_count, stored({{abs_max, 0}}), &shape), 6);
  EXPECT_EQ(derived(zero_count, stored({{abs_max, 1}}), &shape), std::nullopt);
}

TEST(Statistic, a_single_number_tells_everything) {
  EXPECT_EQ(derived(mean, stored({{value, -2}})), -2);
  EXPECT_EQ(derived(abs_mean, stored({{value, -2}})), 2);
  EXPECT_EQ(derived(l2, stored({{value, -2}})), 2);
  EXPECT_EQ(derived(variance, stored({{value, -2}})), 0);
  EXPECT_EQ(derived(nonfinite, stored({{value, kNan}})), 1);
  EXPECT_EQ(derived(inf_count, stored({{value, -kInf}})), 1);
  EXPECT_EQ(derived(all_zero, stored({{value, -0.0}})), 1);
  EXPECT_TRUE(std::isnan(*derived(variance, stored({{value, kInf}}))));
  EXPECT_EQ(derived(max, stored({{value, 1}, {max, 7}})), 7);
}

TEST(Statistic, sources_hold_whatever_may_help) {
  EXPECT_TRUE(sources_of({abs_mean}).contains_all({abs_mean, l1, value}));
  EXPECT_TRUE(sources_of({nonfinite}).contains_all({min, max, abs_max}));
  EXPECT_FALSE(sources_of({abs_mean}).contains(min));
  EXPECT_TRUE(sources_of({}).empty());
}

TEST(Statistic, values_are_reduced_and_counted_in_one_pass) {
  const double values[] = {0, -0.0, kNan, -kInf};
  const int64_t shape[] = {4};
  Statistics out{};
  const StatisticSet wanted = {abs_max, nan_count, zero_count, nonfinite, all_zero};
  ASSERT_TRUE(compute({.data = values, .dtype = DType::float64, .shape = shape}, wanted, out).ok());
  EXPECT_TRUE(std::isnan(out[abs_max]));
  EXPECT_EQ(out[nan_count], 1);
  EXPECT_EQ(out[zero_count], 2);
  EXPECT_EQ(out[nonfinite], 1);
  EXPECT_EQ(out[all_zero], 0);
  const int64_t none[] = {0};
  Statistics empty{};
  ASSERT_TRUE(
      compute({.data = values, .dtype = DType::float64, .shape = none}, wanted, empty).ok());
  EXPECT_TRUE(empty.present.empty());
}

}  // namespace
}  // namespace smd::rules
