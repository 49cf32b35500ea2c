#pragma once

// How many bytes all readers of a process may keep of what they have read, so that a server with
// many runs needs no more memory than one with a few. What is kept longest goes first. Thread-safe.

#include <cstdint>
#include <list>
#include <mutex>

namespace smd::internal {

class BlockBudget final {
 public:
  class Holder {
   public:
    virtual ~Holder() = default;
    // Forgets what it added under this number. Called with the budget locked, by any thread.
    virtual void drop(uint64_t number) = 0;
  };

  explicit BlockBudget(uint64_t most_bytes) : most_bytes_(most_bytes) {}
  // The one that trials share.
  static BlockBudget& of_process();

  // `holder` keeps so many bytes more. Where that is too much, what was added longest ago is
  // dropped, whoever holds it; something larger than the budget at once.
  void add(Holder& holder, uint64_t number, uint64_t bytes);
  // A holder that ends.
  void remove(const Holder& holder);
  uint64_t bytes() const;

 private:
  struct Share {
    Holder* holder = nullptr;
    uint64_t number = 0;
    uint64_t bytes = 0;
  };

  const uint64_t most_bytes_;
  mutable std::mutex mutex_;
  std::list<Share> shares_;  // oldest first; guarded by mutex_
  uint64_t bytes_ = 0;       // their sum; guarded by mutex_
};

}  // namespace smd::internal
