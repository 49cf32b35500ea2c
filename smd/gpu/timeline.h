#pragma once

// The order of what was queued on a stream: who waits for something knows that all before it is
// done, too, so that many are asked for at once. Thread-safe.

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "smd/gpu/driver.h"

namespace smd::gpu {

class Timeline final {
 public:
  // The number of what the event, which was just recorded, ends.
  uint64_t add(Event event);
  bool is_done(uint64_t number) const { return done_.load(std::memory_order_acquire) >= number; }
  // The newest event and its number.
  std::pair<Event, uint64_t> newest() const;
  void set_done(uint64_t number);

 private:
  mutable std::mutex mutex_;  // guards the two below
  Event newest_ = nullptr;
  uint64_t count_ = 0;
  std::atomic<uint64_t> done_{0};
};

}  // namespace smd::gpu
