#include "smd/trial/internal/kept_blocks.h"

#include <sys/mman.h>

#include <cstddef>

namespace smd::internal {
namespace {

constexpr uint64_t kAlignment = alignof(std::max_align_t);
constexpr uint64_t kMostSharedBytes = KeptBlocks::kSlabBytes / 4;
// To know of a block costs about a hundred bytes, which are not counted.
constexpr uint64_t kMostRooms = KeptBlocks::kSlabBytes / 256;

// Its pages cost nothing until something is written there.
std::shared_ptr<std::byte> map_bytes(uint64_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(memory), [bytes](std::byte* at) { ::munmap(at, bytes); }};
}

}  // namespace

std::shared_ptr<const std::byte> KeptBlocks::find(uint64_t key) const {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(key);
  return found == blocks_.end() ? nullptr : found->second;
}

KeptBlocks::Room KeptBlocks::allocate(uint64_t bytes) {
  const bool is_shared = bytes <= kMostSharedBytes;
  const uint64_t slab_bytes = is_shared ? kSlabBytes : bytes;
  Room room;
  {
    const std::lock_guard lock(mutex_);
    auto slab = is_shared ? slabs_.find(shared_slab_) : slabs_.end();
    const bool has_room = slab != slabs_.end() && slab->second.rooms < kMostRooms &&
                          kSlabBytes - slab->second.used_bytes >= bytes;
    if (!has_room) {
      auto memory = map_bytes(slab_bytes);
      if (!memory) return {};
      slab = slabs_.emplace(++next_slab_, Slab{.memory = std::move(memory)}).first;
      if (is_shared) shared_slab_ = slab->first;
    }
    Slab& to = slab->second;
    room = {{to.memory, to.memory.get() + to.used_bytes}, slab->first};
    to.used_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    ++to.rooms;
    if (has_room) return room;
  }
  budget_.add(*this, room.slab, slab_bytes);
  return room;
}

void KeptBlocks::keep(uint64_t key, const Room& room) {
  const std::lock_guard lock(mutex_);
  const auto slab = slabs_.find(room.slab);
  if (slab == slabs_.end() || !blocks_.try_emplace(key, room.memory).second) return;
  slab->second.keys.push_back(key);
}

void KeptBlocks::drop(uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto slab = slabs_.find(number);
  if (slab == slabs_.end()) return;
  for (const uint64_t key : slab->second.keys) blocks_.erase(key);
  slabs_.erase(slab);
}

}  // namespace smd::internal
