#pragma once

// Writes of this process that are still on their way to files. Whoever reads files of the same
// process waits for them, so that it finds what was handed over before. Thread-safe.

#include <chrono>
#include <memory>

namespace smd {

class PendingWrites {
 public:
  virtual ~PendingWrites() = default;
  // Returns when what was handed over before is written or lost, at the latest after `most`.
  virtual void settle(std::chrono::milliseconds most) = 0;
};

// From now on readers wait for these, as long as they live.
void announce(const std::shared_ptr<PendingWrites>& writes);

// Waits for all that were announced in this process, at most so long for each. Nothing happens in a
// forked child, which has none of its parent's threads.
void settle_pending_writes(std::chrono::milliseconds most);

}  // namespace smd
