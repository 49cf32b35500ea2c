#pragma once

// A queue bounded by weight (bytes), for moving values from one thread to another.
// Thread-safe: any number of producers and consumers.

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
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
    if (!fits() && !space_.wait_for(lock, timeout, fits)) return false;
    if (closed_) return false;
    items_.emplace_back(std::move(item), weight);
    weight_ += weight;
    peak_ = std::max(peak_, weight_);
    lock.unlock();
    item_.notify_one();
    return true;
  }

  // Waits until pop() would return at once. False: not before the deadline.
  bool wait_until(std::chrono::steady_clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return item_.wait_until(lock, deadline, [&] { return closed_ || !items_.empty(); });
  }

  // Waits for an item; its weight counts until `done` is called with it.
  // nullopt: closed and drained.
  std::optional<std::pair<T, size_t>> pop() {
    std::unique_lock lock(mutex_);
    item_.wait(lock, [&] { return closed_ || !items_.empty(); });
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

  // The greatest weight ever held.
  size_t peak() const {
    std::lock_guard lock(mutex_);
    return peak_;
  }

 private:
  const size_t limit_;
  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable item_;
  std::condition_variable space_;
  std::deque<std::pair<T, size_t>> items_;
  size_t weight_ = 0;
  size_t peak_ = 0;
  bool closed_ = false;
};

}  // namespace smd
