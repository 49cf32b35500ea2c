#include "smd/rules/quantile.h"

#include <gtest/gtest.h>

#include <vector>

namespace smd::rules {
namespace {

double of(std::vector<double> numbers, double q) { return quantile(numbers, q); }

TEST(Quantile, lies_between_the_nearest_numbers) {
  EXPECT_EQ(of({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(of({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_EQ(of({10, 0}, 0.25), 2.5);
  EXPECT_EQ(of({5, 1, 9}, 0), 1);
  EXPECT_EQ(of({5, 1, 9}, 1), 9);
  EXPECT_EQ(of({7}, 0.95), 7);
  // numpy.percentile([0, 10, 20, 30, 40, 50], [5, 95]).
  EXPECT_DOUBLE_EQ(of({50, 40, 30, 20, 10, 0}, 0.05), 2.5);
  EXPECT_DOUBLE_EQ(of({50, 40, 30, 20, 10, 0}, 0.95), 47.5);
}

}  // namespace
}  // namespace smd::rules
