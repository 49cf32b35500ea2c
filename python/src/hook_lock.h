#pragma once

// The lock of a hook in Python: one thread at a time, which may take it several times. Callbacks of
// the core take it without running Python code. The GIL is held; it is released while waiting.

#include <nanobind/nanobind.h>

#include <chrono>
#include <mutex>
#include <optional>

namespace smdebug {

class HookLock final {
 public:
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

  // False: another thread has kept it for `patience`; none waits for as long as it takes. Signals
  // are handled meanwhile, and what their handlers raise is thrown.
  bool lock(std::optional<std::chrono::duration<double>> patience = std::nullopt) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds kSlice(50);
    const Clock::time_point begin = Clock::now();
    while (!try_lock()) {
      Clock::duration slice = kSlice;
      if (patience) {
        const auto left = *patience - (Clock::now() - begin);
        if (left <= left.zero()) return false;
        slice = std::min(slice, std::chrono::ceil<Clock::duration>(left));
      }
      {
        const nanobind::gil_scoped_release released;
        if (mutex_.try_lock_for(slice)) return true;
      }
      if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
    }
    return true;
  }

 private:
  std::recursive_timed_mutex mutex_;
};

}  // namespace smdebug
