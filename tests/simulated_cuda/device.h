#pragma once

// The devices, and which of them is the current one of a thread. The context of a device is its
// primary context; there is no other. Thread-safe.

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/simulated_cuda/code.h"
#include "tests/simulated_cuda/stream.h"

namespace simulated_cuda {

class Device final {
 public:
  explicit Device(int ordinal) : ordinal_(ordinal) {}

  // nullptr: there is none.
  static Device* find(int ordinal);
  // By its context, which somebody has retained.
  static Device* find(void* context);
  static Device* current();
  // Of this thread, the current one last.
  static std::vector<Device*>& context_stack();

  int ordinal() const { return ordinal_; }
  void* retain_context();
  Stream& null_stream();
  Stream& new_stream();
  // Of all streams that there are now.
  std::vector<std::shared_ptr<Moment>> mark_all();

  // Whether a kernel or copy may be done; it is counted.
  bool begin_work();
  Code failure() const { return failure_; }
  void fail(Code code) { failure_ = code; }
  void fail_after(unsigned long count);
  void repair();

 private:
  const int ordinal_;
  std::atomic<bool> is_retained_ = false;
  std::atomic<Code> failure_ = kSuccess;

  std::mutex mutex_;  // guards what is below
  std::vector<Stream*> streams_;
  Stream* null_stream_ = nullptr;
  bool is_to_fail_ = false;
  unsigned long left_ = 0;
};

}  // namespace simulated_cuda
