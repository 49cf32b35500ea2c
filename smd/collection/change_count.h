#pragma once

// Counts the changes of all collections and sets of collections of the process: as long as the
// count stays, no revision has grown. A hook asks for every tensor, where asking each collection
// would cost more. Thread-safe.

#include <atomic>
#include <cstdint>

namespace smd {

class ChangeCount final {
 public:
  static uint64_t get() { return count_.load(std::memory_order_relaxed); }
  // A revision has grown.
  static void grow() { count_.fetch_add(1, std::memory_order_relaxed); }

 private:
  inline static std::atomic<uint64_t> count_{0};
};

}  // namespace smd
