#include "smd/server/preparation.h"

#include "smd/base/signals_blocked.h"

namespace smd::server {

Preparation::Preparation(std::function<void()> work) : work_(std::move(work)) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

Preparation::~Preparation() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Preparation::want() {
  {
    const std::lock_guard lock(mutex_);
    is_wanted_ = true;
  }
  changed_.notify_one();
}

void Preparation::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || is_wanted_; });
      if (stop_) return;
      is_wanted_ = false;
    }
    work_();
  }
}

}  // namespace smd::server
