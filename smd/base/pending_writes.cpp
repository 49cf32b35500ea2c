#include "smd/base/pending_writes.h"

#include <atomic>
#include <mutex>
#include <vector>

#include "smd/base/fork_guard.h"

namespace smd {
namespace {

struct Registry {
  ForkGuard guard;
  std::mutex mutex;  // guards what follows
  std::vector<std::weak_ptr<PendingWrites>> all;
};

// Never freed: threads may outlive static objects. A child makes one of its own, because the lock
// of its parent's may have been held when it was forked.
std::atomic<Registry*> current{nullptr};

Registry* find_own() {
  Registry* found = current;
  return found != nullptr && found->guard.in_owner() ? found : nullptr;
}

Registry& find_or_make_own() {
  Registry* known = current;
  if (known != nullptr && known->guard.in_owner()) return *known;
  auto fresh = std::make_unique<Registry>();
  if (current.compare_exchange_strong(known, fresh.get())) return *fresh.release();
  return *known;  // another thread was faster
}

}  // namespace

void announce(const std::shared_ptr<PendingWrites>& writes) {
  Registry& own = find_or_make_own();
  std::lock_guard lock(own.mutex);
  std::erase_if(own.all, [](const auto& known) { return known.expired(); });
  own.all.push_back(writes);
}

void settle_pending_writes(std::chrono::milliseconds most) {
  Registry* own = find_own();
  if (own == nullptr) return;
  std::vector<std::weak_ptr<PendingWrites>> all;
  {
    std::lock_guard lock(own->mutex);
    all = own->all;
  }
  for (const auto& known : all) {
    if (const auto writes = known.lock()) writes->settle(most);
  }
}

}  // namespace smd
