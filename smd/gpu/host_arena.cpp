#include "smd/gpu/host_arena.h"

#include <algorithm>
#include <bit>

namespace smd::gpu {
namespace {

constexpr size_t kPage = 4096;
// Slabs grow with the memory that is locked already, so that there are few.
constexpr size_t kLeastSlab = size_t{4} << 20;
constexpr size_t kMostSlab = size_t{128} << 20;

size_t whole(size_t size, size_t unit) {
  return (std::max<size_t>(size, 1) + unit - 1) / unit * unit;
}

}  // namespace

Result<std::byte*> HostArena::take(size_t size) {
  size = whole(size, kPage);
  auto found = find(size);
  if (found == free_.end()) {
    SMD_TRY(found, lock_slab(size));
  }
  const auto [at, piece] = *found;
  free_.erase(found);
  if (piece.size > size) free_.emplace(at + size, Piece{piece.slab, piece.size - size});
  taken_.emplace(at, Piece{piece.slab, size});
  return at;
}

void HostArena::give_back(std::byte* piece) {
  const auto taken = taken_.find(piece);
  if (taken == taken_.end()) return;
  auto at = free_.insert(taken_.extract(taken)).position;
  const auto joins = [](const auto& one, const auto& next) {
    return one.second.slab == next.second.slab && one.first + one.second.size == next.first;
  };
  if (const auto next = std::next(at); next != free_.end() && joins(*at, *next)) {
    at->second.size += next->second.size;
    free_.erase(next);
  }
  if (at == free_.begin()) return;
  if (const auto before = std::prev(at); joins(*before, *at)) {
    before->second.size += at->second.size;
    free_.erase(at);
  }
}

HostArena::Pieces::iterator HostArena::find(size_t size) {
  auto best = free_.end();
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    if (at->second.size < size) continue;
    if (best == free_.end() || at->second.size < best->second.size) best = at;
  }
  return best;
}

Result<HostArena::Pieces::iterator> HostArena::lock_slab(size_t size) {
  // A larger piece has a slab of its own, with an eighth to spare for the next one.
  const size_t spared = whole(size, std::max(std::bit_ceil(size) / 8, kPage));
  size_t slab_bytes = std::max(spared, std::clamp(locked_bytes_, kLeastSlab, kMostSlab));
  auto slab = lock_(slab_bytes);
  if (!slab.ok() && slab_bytes > spared) {  // there may be room for what is needed now
    slab_bytes = spared;
    slab = lock_(slab_bytes);
  }
  if (!slab.ok()) return slab.error();
  locked_bytes_ += slab_bytes;
  return free_.emplace(*slab, Piece{*slab, slab_bytes}).first;
}

}  // namespace smd::gpu
