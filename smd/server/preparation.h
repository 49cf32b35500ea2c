#pragma once

// A thread that does one thing ahead of those who will ask for it. Thread-safe.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace smd::server {

class Preparation final {
 public:
  explicit Preparation(std::function<void()> work);
  // Waits for what is being done.
  ~Preparation();

  // Once more, as soon as what is being done is finished. Does not wait.
  void want();

 private:
  void run();

  const std::function<void()> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_wanted_ = false;  // guarded by mutex_
  bool stop_ = false;       // guarded by mutex_
  std::thread thread_;
};

}  // namespace smd::server
