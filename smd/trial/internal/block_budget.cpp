#include "smd/trial/internal/block_budget.h"

#include <algorithm>

namespace smd::internal {

BlockBudget& BlockBudget::of_process() {
  // Never destroyed: trials may end after static objects do.
  static auto& budget = *new BlockBudget(uint64_t{64} << 20);
  return budget;
}

void BlockBudget::add(Holder& holder, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto own = std::ranges::find(shares_, &holder, &Share::holder);
  if (own == shares_.end()) {
    shares_.push_front({.holder = &holder});
  } else {
    shares_.splice(shares_.begin(), shares_, own);
  }
  while (bytes_ + bytes > most_bytes_ && bytes_ > 0) {
    Share& last = shares_.back();
    if (last.bytes > 0) last.holder->drop();
    bytes_ -= last.bytes;
    last.bytes = 0;
    if (last.holder != &holder) shares_.pop_back();
  }
  shares_.front().bytes += bytes;
  bytes_ += bytes;
}

void BlockBudget::remove(const Holder& holder) {
  const std::lock_guard lock(mutex_);
  const auto own = std::ranges::find(shares_, &holder, &Share::holder);
  if (own == shares_.end()) return;
  bytes_ -= own->bytes;
  shares_.erase(own);
}

uint64_t BlockBudget::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace smd::internal
