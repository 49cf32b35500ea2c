#include "smd/gpu/timeline.h"

namespace smd::gpu {

uint64_t Timeline::add(Event event) {
  const std::lock_guard lock(mutex_);
  newest_ = event;
  return ++count_;
}

std::pair<Event, uint64_t> Timeline::newest() const {
  const std::lock_guard lock(mutex_);
  return {newest_, count_};
}

void Timeline::set_done(uint64_t number) {
  uint64_t known = done_.load(std::memory_order_relaxed);
  while (known < number && !done_.compare_exchange_weak(known, number, std::memory_order_acq_rel)) {
  }
}

}  // namespace smd::gpu
