#pragma once

// Points in the queues of streams, and the events that name them. Thread-safe.

#include <condition_variable>
#include <memory>
#include <mutex>

namespace simulated_cuda {

class Device;

// A point in the queue of a stream.
class Moment final {
 public:
  void come();
  bool has_come();
  void wait();

 private:
  std::mutex mutex_;  // guards what is below
  std::condition_variable changed_;
  bool has_come_ = false;
};

class Event final {
 public:
  explicit Event(Device& device) : device_(device) {}

  Device& device() const { return device_; }
  // Who has asked for the event before goes on waiting for the moment that it named then.
  void record(std::shared_ptr<Moment> moment);
  // nullptr: it was never recorded.
  std::shared_ptr<Moment> moment();

 private:
  Device& device_;
  std::mutex mutex_;  // guards what is below
  std::shared_ptr<Moment> moment_;
};

}  // namespace simulated_cuda
