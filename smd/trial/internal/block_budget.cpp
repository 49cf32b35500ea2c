#include "smd/trial/internal/block_budget.h"

namespace smd::internal {

BlockBudget& BlockBudget::of_process() {
  // Never destroyed: trials may end after static objects do.
  static auto& budget = *new BlockBudget(uint64_t{64} << 20);
  return budget;
}

void BlockBudget::add(Holder& holder, uint64_t number, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  shares_.push_back({&holder, number, bytes});
  bytes_ += bytes;
  while (bytes_ > most_bytes_) {
    const Share& oldest = shares_.front();
    oldest.holder->drop(oldest.number);
    bytes_ -= oldest.bytes;
    shares_.pop_front();
  }
}

void BlockBudget::remove(const Holder& holder) {
  const std::lock_guard lock(mutex_);
  std::erase_if(shares_, [&](const Share& share) {
    const bool is_own = share.holder == &holder;
    if (is_own) bytes_ -= share.bytes;
    return is_own;
  });
}

uint64_t BlockBudget::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace smd::internal
