#include "smd/hook/second_reader.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

#include "smd/base/signals_blocked.h"

namespace smd {

struct SecondReader::Shared {
  // Jobs that nobody has taken, less than zero when somebody has looked for more.
  std::atomic<int64_t> left{0};

  std::mutex mutex;  // guards everything below
  std::condition_variable changed;
  std::span<Job> jobs;  // empty: there is no list
  bool busy = false;
  bool ended = false;

  bool take() { return left.fetch_sub(1, std::memory_order_relaxed) > 0; }
};

SecondReader::SecondReader() : shared_(std::make_shared<Shared>()) {}

SecondReader::~SecondReader() {
  if (!started_ || !fork_guard_.in_owner()) return;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->ended = true;
  }
  shared_->changed.notify_all();
}

bool SecondReader::has_processor() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) >= 2;
}

void SecondReader::begin(std::span<Job> jobs) {
  if (!started_) {
    const SignalsBlocked inherited_by_the_thread;
    try {
      std::thread(&SecondReader::run, shared_).detach();
      started_ = true;
    } catch (const std::system_error&) {  // there is no room for a thread: who asks reads all
    }
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->left.store(static_cast<int64_t>(jobs.size()), std::memory_order_relaxed);
    shared_->jobs = jobs;
  }
  shared_->changed.notify_all();
}

bool SecondReader::take() { return shared_->take(); }

void SecondReader::finish() {
  std::unique_lock lock(shared_->mutex);
  shared_->jobs = {};
  shared_->changed.wait(lock, [&] { return !shared_->busy; });
}

void SecondReader::run(const std::shared_ptr<Shared>& shared) {
  pthread_setname_np(pthread_self(), "smdebug-reader");
  // Waking up must not push the training thread off its processor: better to come late.
  const sched_param priority{};
  (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &priority);
  std::unique_lock lock(shared->mutex);
  while (true) {
    shared->changed.wait(lock, [&] { return shared->ended || !shared->jobs.empty(); });
    if (shared->ended) return;
    const std::span<Job> jobs = shared->jobs;
    shared->busy = true;
    lock.unlock();
    for (size_t i = jobs.size(); shared->take(); --i) {
      Job& job = jobs[i - 1];
      try {
        job.status = reduce(job.tensor, job.request, job.result);
      } catch (const std::exception& error) {  // a median needs memory
        job.status = Error{ErrorCode::io, error.what()};
      }
    }
    lock.lock();
    shared->jobs = {};
    shared->busy = false;
    shared->changed.notify_all();
  }
}

}  // namespace smd
