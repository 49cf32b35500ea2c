#include "smd/hook/budget.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace smd {
namespace {

// A training loop whose times are made up: saves at multiples of the stretched interval.
struct Loop {
  Budget budget;
  BudgetOptions options;
  int64_t interval = 1;
  double now = 0;
  double cost = 0;
  int64_t steps = 0;
  std::vector<int64_t> saved = {};

  explicit Loop(const BudgetOptions& o) : budget(o), options(o) {}

  void run(int64_t count, const std::function<double(int64_t)>& step_secs,
           const std::function<double(int64_t)>& save_secs) {
    for (int64_t i = 0; i < count; ++i, ++steps) {
      now += step_secs(steps);
      if (steps % stretched_interval(interval, budget.stride(), options.max_interval) != 0) {
        continue;
      }
      saved.push_back(steps);
      const double spent = save_secs(steps);
      now += spent;
      cost += spent;
      budget.use(budget.settle({.cost_secs = cost, .training_secs = now, .steps = steps + 1}));
    }
  }
  double share() const { return cost / now; }
  int64_t longest_gap() const {
    int64_t longest = 0;
    for (size_t i = 1; i < saved.size(); ++i) longest = std::max(longest, saved[i] - saved[i - 1]);
    return longest;
  }
};

std::function<double(int64_t)> always(double value) {
  return [value](int64_t) { return value; };
}

TEST(Budget, keeps_the_share_of_the_training_time) {
  for (const double save_secs : {1e-4, 3e-4, 1e-3, 5e-3}) {
    Loop loop({.max_overhead = 0.01});
    loop.run(20'000, always(0.01), always(save_secs));
    EXPECT_LE(loop.share(), 0.0105) << save_secs;
    EXPECT_GE(loop.share(), 0.004) << save_secs << ": what the budget pays for is saved";
  }
}

TEST(Budget, saves_everything_that_it_can_pay_for) {
  Loop loop({.max_overhead = 0.05});
  loop.run(1000, always(0.01), always(1e-4));
  EXPECT_EQ(loop.saved.size(), 1000u);
}

TEST(Budget, saves_at_least_every_max_interval_steps_whatever_it_costs) {
  Loop loop({.max_overhead = 0.001, .max_interval = 100});
  loop.run(5000, always(0.001), always(1.0));
  EXPECT_EQ(loop.longest_gap(), 64) << "the greatest power of two";
  EXPECT_GT(loop.share(), 0.5);
}

TEST(Budget, a_dear_first_step_is_paid_off_and_is_no_measure) {
  Loop loop({.max_overhead = 0.01});
  loop.run(30'000, always(0.01), [](int64_t step) { return step == 0 ? 0.5 : 2e-4; });
  EXPECT_LE(loop.share(), 0.0105);
  EXPECT_LE(loop.budget.stride(), 4) << "0.2 ms of 10 ms steps need an interval of 2";
}

TEST(Budget, follows_steps_that_become_slower_and_faster) {
  Loop loop({.max_overhead = 0.01});
  loop.run(5000, always(0.01), always(1e-3));
  const int64_t fast = loop.budget.stride();
  loop.run(5000, always(0.1), always(1e-3));
  const int64_t slow = loop.budget.stride();
  EXPECT_LT(slow, fast);
  EXPECT_LE(loop.share(), 0.0105);
  loop.run(50'000, always(0.01), always(1e-3));
  EXPECT_GT(loop.budget.stride(), slow);
  EXPECT_LE(loop.share(), 0.0105);
}

TEST(Budget, steps_of_very_different_length_stay_inside) {
  Loop loop({.max_overhead = 0.02});
  loop.run(
      40'000, [](int64_t step) { return step % 7 == 0 ? 0.05 : 0.001; },
      [](int64_t step) { return step % 3 == 0 ? 2e-3 : 1e-4; });
  EXPECT_LE(loop.share(), 0.021);
}

TEST(Budget, an_interval_is_stretched_to_the_limit_and_a_longer_one_left_alone) {
  EXPECT_EQ(stretched_interval(1, 1, 100), 1);
  EXPECT_EQ(stretched_interval(1, 8, 100), 8);
  EXPECT_EQ(stretched_interval(10, 64, 100), 80);
  EXPECT_EQ(stretched_interval(500, 64, 100), 500);
  EXPECT_EQ(stretched_interval(1, 64, 1), 1);
}

}  // namespace
}  // namespace smd
