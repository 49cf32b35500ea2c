#pragma once

// Measures what recording costs the training thread. Steps that save nothing are not measured: they
// cost less than a look at the clock. Where scopes of several threads overlap, the time from the
// first begin to the last end counts once. Atomic, so that a callback on another thread does no
// harm; otherwise one thread at a time.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "smd/base/clock.h"

namespace smd {

class CostMeter final {
 public:
  explicit CostMeter(std::shared_ptr<const Clock> clock) : clock_(std::move(clock)) {}

  // Work of ours; may be nested, the outermost counts.
  void enter() {
    if (depth_.fetch_add(1, std::memory_order_relaxed) == 0) begun_ = now_ns();
  }
  void leave() {
    if (depth_.fetch_sub(1, std::memory_order_relaxed) == 1) add(now_ns() - begun_);
  }
  class Scope final {
   public:
    explicit Scope(CostMeter& meter) : meter_(meter) { meter_.enter(); }
    ~Scope() { meter_.leave(); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    CostMeter& meter_;
  };

  // For calls that are hardly longer than two looks at the clock: one of kSampled is measured and
  // counts for all of them. The first ones, which are not like the others, and large ones are
  // measured each.
  static constexpr int64_t kSampled = 16;
  class CallScope final {
   public:
    CallScope(CostMeter& meter, int64_t size_bytes) : meter_(meter) {
      if (meter.depth_.load(std::memory_order_relaxed) != 0) return;
      const bool each = size_bytes >= kLargeBytes || meter.calls_ < kSampled;
      if (meter.calls_++ % kSampled != 0 && !each) return;
      weight_ = each ? 1 : kSampled;
      meter.depth_.fetch_add(1, std::memory_order_relaxed);
      begun_ = meter.now_ns();
    }
    ~CallScope() {
      if (weight_ == 0) return;
      meter_.depth_.fetch_sub(1, std::memory_order_relaxed);
      meter_.add((meter_.now_ns() - begun_) * weight_);
    }
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

   private:
    static constexpr int64_t kLargeBytes = 16 << 10;
    CostMeter& meter_;
    int64_t begun_ = 0;
    int64_t weight_ = 0;  // 0: not measured
  };

  // The first step begins.
  void start() { started_ = now_ns(); }
  bool started() const { return started_ >= 0; }
  double cost_secs() const {
    return static_cast<double>(spent_.load(std::memory_order_relaxed)) * 1e-9;
  }
  // Since start(), as of now.
  double training_secs() const {
    return started() ? static_cast<double>(now_ns() - started_) * 1e-9 : 0;
  }

 private:
  int64_t now_ns() const {
    return std::chrono::nanoseconds(clock_->now().time_since_epoch()).count();
  }
  void add(int64_t ns) { spent_.fetch_add(ns, std::memory_order_relaxed); }

  std::shared_ptr<const Clock> clock_;
  std::atomic<int> depth_{0};
  std::atomic<int64_t> begun_{0};
  std::atomic<int64_t> spent_{0};
  int64_t started_ = -1;
  int64_t calls_ = 0;
};

}  // namespace smd
