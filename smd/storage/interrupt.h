#pragma once

// Ends long waits and transfers early, from another thread. Once set it stays set. Thread-safe.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace smd::storage {

class Interrupt final {
 public:
  void set() {
    {
      std::lock_guard lock(mutex_);
      set_ = true;
    }
    changed_.notify_all();
  }

  bool is_set() const { return set_; }

  // Waits so long, unless it is set before. False: it is set.
  bool wait(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    return !changed_.wait_for(lock, time, [&] { return set_.load(); });
  }

 private:
  std::mutex mutex_;  // for waiting only
  std::condition_variable changed_;
  std::atomic<bool> set_ = false;
};

}  // namespace smd::storage
