#include "smd/rules/fingerprint.h"

#include <gtest/gtest.h>

#include <limits>

namespace smd::rules {
namespace {

using Outcome = Comparison::Outcome;

Fingerprint with(std::initializer_list<std::pair<Statistic, double>> numbers) {
  Fingerprint out;
  for (const auto& [statistic, number] : numbers) out.statistics.set(statistic, number);
  return out;
}

TEST(Fingerprint, hashes_decide_where_there_are_two) {
  Fingerprint a{.shape = Shape{2}, .hash = 7};
  Fingerprint b = a;
  b.statistics.set(Statistic::mean, 3);
  EXPECT_EQ(compare(a, b, 0).outcome, Outcome::equal);
  b.hash = 8;
  EXPECT_EQ(compare(a, b, 0).outcome, Outcome::different);
  EXPECT_EQ(compare(a, b, 0).by, "values");
  b.dtype = DType::float16;
  EXPECT_EQ(compare(a, b, 0).outcome, Outcome::unlike);
}

TEST(Fingerprint, sums_may_differ_a_little_and_picked_elements_may_not) {
  const auto a = with({{Statistic::max, 2}, {Statistic::l2, 5}});
  EXPECT_EQ(compare(a, with({{Statistic::max, 2}, {Statistic::l2, 5.000001}}), 1e-6).outcome,
            Outcome::equal);
  const Comparison norm = compare(a, with({{Statistic::max, 2}, {Statistic::l2, 5.1}}), 1e-6);
  EXPECT_EQ(norm.outcome, Outcome::different);
  EXPECT_EQ(norm.by, "l2");
  EXPECT_NEAR(norm.difference, 0.1, 1e-12);
  EXPECT_EQ(compare(a, with({{Statistic::max, 2.000001}, {Statistic::l2, 5}}), 1e-6).by, "max");
}

TEST(Fingerprint, nan_is_equal_to_nan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(compare(with({{Statistic::max, nan}}), with({{Statistic::max, nan}}), 0).outcome,
            Outcome::equal);
  EXPECT_EQ(compare(with({{Statistic::max, nan}}), with({{Statistic::max, 1}}), 0).outcome,
            Outcome::different);
}

TEST(Fingerprint, other_shapes_and_other_statistics_cannot_be_compared) {
  EXPECT_EQ(compare({.shape = Shape{2}, .hash = 1}, {.shape = Shape{3}, .hash = 1}, 0).outcome,
            Outcome::unlike);
  EXPECT_EQ(compare(with({{Statistic::max, 1}}), with({{Statistic::min, 1}}), 0).outcome,
            Outcome::unlike);
  EXPECT_TRUE(Fingerprint().empty());
}

}  // namespace
}  // namespace smd::rules
