#pragma once

// When a growing run, and each of its workers, was last heard of, for rules that watch the clock.
// One thread at a time.

#include <memory>
#include <optional>
#include <vector>

#include "smd/base/clock.h"
#include "smd/rules/rule.h"
#include "smd/trial/trial.h"

namespace smd::rules {

class ProgressMeter final {
 public:
  // Silence begins now.
  explicit ProgressMeter(std::shared_ptr<const Clock> clock);

  // Of what the trial has read so far.
  Progress measure(const Trial& trial);

 private:
  struct Heard {
    Step newest_step = -1;
    double secs = 0;
  };

  const std::shared_ptr<const Clock> clock_;
  std::optional<StepInfo> newest_step_;
  double newest_secs_;
  std::vector<Heard> heard_;  // by worker
};

}  // namespace smd::rules
