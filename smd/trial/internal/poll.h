#pragma once

// Waiting where nothing tells of changes. Thread-safe.

#include <algorithm>
#include <chrono>
#include <thread>

namespace smd::internal {

// How often is looked.
inline constexpr std::chrono::milliseconds kLocalPoll{250};
inline constexpr std::chrono::milliseconds kRemotePoll{2000};

// True when it is time for the next look, false at the deadline.
inline bool wait_for_next_look(std::chrono::milliseconds poll,
                               std::chrono::steady_clock::time_point deadline) {
  const auto next = std::chrono::steady_clock::now() + poll;
  std::this_thread::sleep_until(std::min(deadline, next));
  return next <= deadline;
}

}  // namespace smd::internal
