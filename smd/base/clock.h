#pragma once

// Time, injected so that tests decide what it is. Thread-safe.

#include <chrono>
#include <memory>

namespace smd {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall time in Unix seconds.
  virtual double unix_secs() const = 0;
  // Monotonic time for deadlines.
  virtual std::chrono::steady_clock::time_point now() const = 0;
};

// The operating system's clock; has no state.
std::shared_ptr<const Clock> system_clock();

// Stands still until it is told to move.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(double unix_secs) : unix_secs_(unix_secs) {}
  void advance(double secs) { unix_secs_ += secs; }
  double unix_secs() const override { return unix_secs_; }
  std::chrono::steady_clock::time_point now() const override {
    return std::chrono::steady_clock::time_point(
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(unix_secs_)));
  }

 private:
  double unix_secs_;
};

}  // namespace smd
