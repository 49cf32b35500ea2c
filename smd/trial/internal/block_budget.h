#pragma once

// How many bytes all readers of a process may keep of what they have read, so that a server with
// many runs needs no more memory than one with a few. Who read last keeps longest. Thread-safe.

#include <cstdint>
#include <list>
#include <mutex>

namespace smd::internal {

class BlockBudget final {
 public:
  class Holder {
   public:
    virtual ~Holder() = default;
    // Forgets all that is kept. Called with the budget locked, by any thread.
    virtual void drop() = 0;
  };

  explicit BlockBudget(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  // The one that trials share.
  static BlockBudget& of_process();

  // `holder` is about to keep so many bytes more. Where that is too much the others drop theirs,
  // the one that read longest ago first, and at last the holder itself.
  void add(Holder& holder, uint64_t bytes);
  // A holder that ends.
  void remove(const Holder& holder);
  uint64_t bytes() const;

 private:
  struct Share {
    Holder* holder = nullptr;
    uint64_t bytes = 0;
  };

  const uint64_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Share> shares_;  // last used first; guarded by mutex_
  uint64_t bytes_ = 0;       // their sum; guarded by mutex_
};

}  // namespace smd::internal
