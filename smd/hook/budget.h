#pragma once

// Keeps the cost of recording inside a share of the training time: chooses by how much the
// intervals between saved steps are longer than they were configured. One thread at a time; looks
// at no clock itself.

#include <cstdint>

namespace smd {

// Intervals that nobody pinned are stretched up to this, unless told otherwise.
inline constexpr int64_t kDefaultMaxInterval = 100;

struct BudgetOptions {
  double max_overhead = 0.01;  // share of the training time
  int64_t max_interval = kDefaultMaxInterval;
};

// What has been measured since the training began.
struct Spending {
  double cost_secs = 0;
  double training_secs = 0;
  int64_t steps = 0;
};

class Budget final {
 public:
  explicit Budget(const BudgetOptions& options) : options_(options) {}

  // Intervals are multiplied by this: a power of two, so that the steps of a long interval are
  // steps of the shorter ones, too.
  int64_t stride() const { return stride_; }

  // A step that is subject to the budget is over. The stride that the next ones need; it counts
  // once use() says so.
  //
  // What the next kHorizon such steps will cost, together with what was spent too much so far, has
  // to fit into the budget of the time they take. The first step warms up caches and files: it is
  // paid for, but no measure for those to come.
  int64_t settle(const Spending& total);
  void use(int64_t stride) { stride_ = stride; }

  static constexpr int kHorizon = 8;

 private:
  bool fits(int64_t stride, double share, double debt) const;

  const BudgetOptions options_;
  int64_t stride_ = 1;
  Spending last_;
  int samples_ = 0;
  double period_cost_ = 0;       // of one saved step and what comes with it, smoothed
  double step_secs_ = 0;         // of a step without our cost, smoothed
  double steps_per_period_ = 0;  // at stride 1
};

// The interval that `stride` makes of a configured one: at most the largest multiple by a power of
// two that is not above `max_interval`, and never less than it was.
int64_t stretched_interval(int64_t interval, int64_t stride, int64_t max_interval);

}  // namespace smd
