#pragma once

// How long to wait before another try: twice as long each time up to a limit, and by chance a part
// of it, so that many clients do not come back at the same moment. One thread at a time.

#include <chrono>
#include <functional>

namespace smd::storage {

struct RetryLimits {
  std::chrono::milliseconds first{100};
  std::chrono::milliseconds longest{10'000};
};

class RetrySchedule final {
 public:
  // `random` gives numbers in [0, 1). Empty: from the system's generator.
  explicit RetrySchedule(RetryLimits limits = {}, std::function<double()> random = {});

  // Of the next wait.
  std::chrono::milliseconds next();
  void reset() { tries_ = 0; }

 private:
  const RetryLimits limits_;
  const std::function<double()> random_;
  int tries_ = 0;
};

}  // namespace smd::storage
