#include "tests/simulated_cuda/event.h"

#include <utility>

namespace simulated_cuda {

void Moment::come() {
  const std::lock_guard lock(mutex_);
  has_come_ = true;
  changed_.notify_all();
}

bool Moment::has_come() {
  const std::lock_guard lock(mutex_);
  return has_come_;
}

void Moment::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return has_come_; });
}

void Event::record(std::shared_ptr<Moment> moment) {
  const std::lock_guard lock(mutex_);
  moment_ = std::move(moment);
}

std::shared_ptr<Moment> Event::moment() {
  const std::lock_guard lock(mutex_);
  return moment_;
}

}  // namespace simulated_cuda
