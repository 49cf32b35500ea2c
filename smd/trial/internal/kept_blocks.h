#pragma once

// What a reader keeps of what it has read, within a budget. It lies in mappings of its own: pieces
// of the heap that threads allocate in turn and free together leave holes in the arena of each,
// which the system does not get back. Thread-safe.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "smd/trial/internal/block_budget.h"

namespace smd::internal {

class KeptBlocks final : private BlockBudget::Holder {
 public:
  // Of a mapping that small blocks share; larger ones get their own.
  static constexpr uint64_t kSlabBytes = uint64_t{256} << 10;

  explicit KeptBlocks(BlockBudget& budget = BlockBudget::of_process()) : budget_(budget) {}
  ~KeptBlocks() override { budget_.remove(*this); }
  KeptBlocks(const KeptBlocks&) = delete;
  KeptBlocks& operator=(const KeptBlocks&) = delete;

  // nullptr: it is not kept.
  std::shared_ptr<const std::byte> find(uint64_t key) const;

  // Memory to be filled, aligned for every number.
  struct Room {
    std::shared_ptr<std::byte> memory;  // nullptr: there is none
    uint64_t slab = 0;
  };
  Room allocate(uint64_t bytes);
  // The block in this room can be found from now on, unless the room was needed meanwhile.
  void keep(uint64_t key, const Room& room);

 private:
  struct Slab {
    std::shared_ptr<std::byte> memory;
    uint64_t used_bytes = 0;
    uint64_t rooms = 0;
    std::vector<uint64_t> keys;  // of the blocks in it
  };

  void drop(uint64_t number) override;

  BlockBudget& budget_;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::unordered_map<uint64_t, std::shared_ptr<const std::byte>> blocks_;
  std::map<uint64_t, Slab> slabs_;
  uint64_t next_slab_ = 0;
  uint64_t shared_slab_ = 0;  // the one that small blocks go to, if it is there
};

}  // namespace smd::internal
