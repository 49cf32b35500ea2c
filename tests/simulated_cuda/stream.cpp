#include "tests/simulated_cuda/stream.h"

#include <chrono>
#include <thread>
#include <utility>

#include "tests/simulated_cuda/device.h"
#include "tests/simulated_cuda/settings.h"
#include "tests/simulated_cuda/simulated_cuda.h"

namespace simulated_cuda {
namespace {

struct Delay {
  std::atomic<unsigned> microseconds = Settings::get().delay_us;
  std::atomic<unsigned> seed = Settings::get().seed;
  std::atomic<uint64_t> times_set = 1;

  static Delay& all() {
    static auto& delay = *new Delay;
    return delay;
  }
};

std::atomic<uint64_t> last_id = 0;
std::atomic<int> capturing = 0;

}  // namespace

Stream::Stream(Device& device) : device_(device), id_(++last_id) {}

void Stream::do_work(std::function<Code()> work) {
  push([this, work = std::move(work)] {
    if (!device_.begin_work()) return;
    if (const Code code = work(); code != kSuccess) device_.fail(code);
  });
}

void Stream::call(std::function<void()> function) {
  push([this, function = std::move(function)] {
    if (device_.failure() == kSuccess) function();
  });
}

void Stream::wait_for(std::shared_ptr<Moment> moment) {
  push([moment = std::move(moment)] { moment->wait(); });
}

std::shared_ptr<Moment> Stream::mark() {
  auto moment = std::make_shared<Moment>();
  if (is_idle()) {
    moment->come();
  } else {
    push([moment] { moment->come(); });
  }
  return moment;
}

void Stream::set_capturing(bool now) {
  if (is_capturing_.exchange(now) != now) capturing += now ? 1 : -1;
}

bool Stream::is_any_capturing() { return capturing > 0; }

void Stream::set_delay(unsigned microseconds, unsigned seed) {
  Delay& delay = Delay::all();
  delay.microseconds = microseconds;
  delay.seed = seed;
  ++delay.times_set;
}

void Stream::push(std::function<void()> operation) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(operation));
  if (!std::exchange(is_running_, true)) std::thread([this] { run(); }).detach();
}

bool Stream::is_idle() {
  const std::lock_guard lock(mutex_);
  return !is_running_;
}

void Stream::run() {
  for (;;) {
    std::function<void()> operation;
    {
      const std::lock_guard lock(mutex_);
      is_running_ = !queue_.empty();
      if (!is_running_) return;
      operation = std::move(queue_.front());
      queue_.pop_front();
    }
    delay();
    operation();
  }
}

void Stream::delay() {
  Delay& delay = Delay::all();
  const unsigned most = delay.microseconds;
  if (most == 0) return;
  if (const uint64_t times = delay.times_set; std::exchange(delays_set_, times) != times) {
    random_.seed(delay.seed + static_cast<unsigned>(id_));
  }
  std::this_thread::sleep_for(std::chrono::microseconds(random_() % (most + 1)));
}

}  // namespace simulated_cuda

void simulated_cuda_set_delay(unsigned microseconds, unsigned seed) {
  simulated_cuda::Stream::set_delay(microseconds, seed);
}
