#include "smd/rules/spike.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace smd::rules {
namespace {

using Event = Spike::Event;

// Numbers around 1, with a spread of 0.1.
double ordinary(int i) { return 1 + 0.1 * std::sin(i * 1.7); }

Spike trained(int count, const SpikeOptions& options = {}) {
  Spike spike(options);
  for (int i = 0; i < count; ++i) EXPECT_EQ(spike.add(ordinary(i), {.step = i}), Event::none);
  return spike;
}

TEST(Spike, a_number_far_above_the_median_begins_one_and_an_ordinary_one_ends_it) {
  Spike spike = trained(50);
  EXPECT_EQ(spike.add(3, {.step = 50}), Event::began);
  EXPECT_TRUE(spike.is_open());
  EXPECT_EQ(spike.began_at().step, 50);
  EXPECT_NEAR(spike.median(), 1, 0.05);
  EXPECT_GT(spike.threshold(), 1.5);
  EXPECT_LT(spike.threshold(), 2.5);
  EXPECT_EQ(spike.add(4, {.step = 51}), Event::none);
  EXPECT_EQ(spike.add(1, {.step = 52}), Event::ended);
  EXPECT_FALSE(spike.is_open());
  EXPECT_EQ(spike.length(), 2);
  EXPECT_EQ(spike.peak(), 4);
}

TEST(Spike, the_threshold_does_not_follow_the_stretch) {
  Spike spike = trained(50, {.patience = 5});
  EXPECT_EQ(spike.add(3, {}), Event::began);
  const double threshold = spike.threshold();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(spike.add(3, {}), Event::none);
  EXPECT_EQ(spike.add(3, {}), Event::alarm);
  EXPECT_EQ(spike.add(3, {}), Event::none);
  EXPECT_EQ(spike.threshold(), threshold);
}

TEST(Spike, a_level_that_stays_becomes_the_new_one) {
  Spike spike = trained(50, {.window = 30});
  EXPECT_EQ(spike.add(3, {}), Event::began);
  Event last = Event::none;
  for (int i = 1; i < 30; ++i) last = spike.add(3, {});
  EXPECT_EQ(last, Event::settled);
  EXPECT_EQ(spike.add(3.1, {}), Event::none);
  EXPECT_FALSE(spike.is_open());
  EXPECT_EQ(spike.add(9, {}), Event::began);
}

TEST(Spike, few_numbers_give_no_threshold_but_ten_times_the_largest_counts) {
  Spike spike = trained(4);
  EXPECT_EQ(spike.add(9, {}), Event::none);
  EXPECT_EQ(spike.add(89, {}), Event::none);
  EXPECT_EQ(spike.add(891, {}), Event::began);
  EXPECT_TRUE(std::isnan(spike.median()));
}

TEST(Spike, numbers_without_spread_may_move_a_little) {
  Spike spike;
  for (int i = 0; i < 50; ++i) EXPECT_EQ(spike.add(0.5, {}), Event::none);
  EXPECT_EQ(spike.add(0.56, {}), Event::none);
  EXPECT_EQ(spike.add(0.58, {}), Event::began);
}

TEST(Spike, what_is_not_finite_goes_on_with_a_stretch_only) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Spike spike = trained(50, {.patience = 2});
  EXPECT_EQ(spike.add(kNan, {}), Event::none);
  EXPECT_FALSE(spike.is_open());
  EXPECT_EQ(spike.add(3, {}), Event::began);
  EXPECT_EQ(spike.add(kNan, {}), Event::alarm);
  EXPECT_EQ(spike.peak(), 3);
}

TEST(Spike, a_falling_series_has_none) {
  Spike spike;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(spike.add(5 * std::exp(-i / 60.0) + 0.1 * std::sin(i * 2.3), {}), Event::none);
  }
}

}  // namespace
}  // namespace smd::rules
