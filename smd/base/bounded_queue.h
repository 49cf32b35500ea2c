#pragma once

// A queue bounded by weight (bytes), for moving values from one thread to another.
// Thread-safe: any number of producers and consumers.
//
// Waking a thread costs a producer 10 to 20 µs. So a consumer that has nothing to do looks again by
// itself for a while, after pauses that grow, and meanwhile is woken only if several items wait.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace smd {

template <typename T>
class BoundedQueue final {
 public:
  explicit BoundedQueue(size_t limit) : limit_(limit) {}

  // Waits until the item fits under the limit; one that is heavier than the limit fits alone.
  // False: no room within `timeout`, or the queue is closed; the item was dropped.
  bool push(T item, size_t weight, std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    const auto fits = [&] { return closed_ || weight_ == 0 || weight_ + weight <= limit_; };
    if (!fits()) {
      item_.notify_one();
      if (!space_.wait_for(lock, timeout, fits)) return false;
    }
    if (closed_) return false;
    items_.emplace_back(std::move(item), weight);
    ++pushed_;
    weight_ += weight;
    peak_ = std::max(peak_, weight_);
    const bool will_be_seen = dozing_ && items_.size() < kMostUnseen;
    lock.unlock();
    if (!will_be_seen) item_.notify_one();
    return true;
  }

  // Waits until consumers have finished with all that was pushed so far. False: not within
  // `timeout`.
  bool wait_until_done(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    if (done_ < pushed_) item_.notify_one();
    return space_.wait_for(lock, timeout, [this, all = pushed_] { return done_ >= all; });
  }

  // Waits until pop() would return at once. False: not before the deadline.
  bool wait_until(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    doze(lock, deadline);
    return item_.wait_until(lock, deadline, [&] { return is_ready(); });
  }

  // Waits for an item; its weight counts until `done` is called with it.
  // nullopt: closed and drained.
  std::optional<std::pair<T, size_t>> pop() {
    std::unique_lock lock(mutex_);
    doze(lock, std::chrono::steady_clock::time_point::max());
    item_.wait(lock, [&] { return is_ready(); });
    if (items_.empty()) return std::nullopt;
    auto front = std::move(items_.front());
    items_.pop_front();
    return front;
  }

  // The consumer has finished with an item of this weight.
  void done(size_t weight) {
    {
      std::lock_guard lock(mutex_);
      weight_ -= weight;
      ++done_;
    }
    space_.notify_all();
  }

  // Pending items can still be popped; pushing fails from now on.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    item_.notify_all();
    space_.notify_all();
  }

  // What is pending, or not done.
  size_t weight() const {
    std::lock_guard lock(mutex_);
    return weight_;
  }

  // The greatest weight ever held.
  size_t peak() const {
    std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  static constexpr size_t kMostUnseen = 4;
  static constexpr std::chrono::milliseconds kFirstDoze{1};
  static constexpr std::chrono::milliseconds kLastDoze{16};

  bool is_ready() const { return closed_ || !items_.empty(); }

  // What comes meanwhile waits no longer than nothing came before.
  void doze(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline) {
    for (auto pause = kFirstDoze; !is_ready() && pause <= kLastDoze; pause *= 2) {
      const auto end = std::chrono::steady_clock::now() + pause;
      if (end >= deadline) return;
      dozing_ = true;
      item_.wait_until(lock, end);
      dozing_ = false;
    }
  }

  const size_t limit_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable item_;
  std::condition_variable space_;
  std::deque<std::pair<T, size_t>> items_;
  size_t weight_ = 0;
  size_t peak_ = 0;
  uint64_t pushed_ = 0;
  uint64_t done_ = 0;
  bool closed_ = false;
  bool dozing_ = false;  // a consumer looks soon
};

}  // namespace smd
