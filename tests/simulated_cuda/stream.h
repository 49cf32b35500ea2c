#pragma once

// A queue of operations, and a thread that does them one after the other while there are any. Never
// destroyed. Thread-safe.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>

#include "tests/simulated_cuda/code.h"
#include "tests/simulated_cuda/event.h"

namespace simulated_cuda {

class Device;

class Stream final {
 public:
  explicit Stream(Device& device);

  Device& device() const { return device_; }
  // No other stream has it.
  uint64_t id() const { return id_; }

  // A kernel or a copy: the device fails with what it returns. A device that has failed does none.
  void do_work(std::function<Code()> work);
  // Calls a function of the program, unless the device has failed.
  void call(std::function<void()> function);
  // Waits there until the moment has come.
  void wait_for(std::shared_ptr<Moment> moment);
  // The moment when everything before it is done.
  std::shared_ptr<Moment> mark();

  void set_capturing(bool capturing);
  bool is_capturing() const { return is_capturing_; }
  static bool is_any_capturing();

  // Of each operation, at most.
  static void set_delay(unsigned microseconds, unsigned seed);

 private:
  void push(std::function<void()> operation);
  bool is_idle();
  void run();
  void delay();

  Device& device_;
  const uint64_t id_;
  std::atomic<bool> is_capturing_ = false;
  std::minstd_rand random_;  // of the thread
  uint64_t delays_set_ = 0;  // the same

  std::mutex mutex_;  // guards what is below
  std::deque<std::function<void()>> queue_;
  bool is_running_ = false;
};

}  // namespace simulated_cuda
