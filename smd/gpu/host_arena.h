#pragma once

// Page-locked memory in pieces of any size. What is locked stays locked, as unlocking makes devices
// wait; pieces that are given back join their neighbours, so that all sizes share it and it grows
// with what is in use at once, not with the number of sizes. One thread at a time.

#include <cstddef>
#include <functional>
#include <map>

#include "smd/base/result.h"

namespace smd::gpu {

class HostArena final {
 public:
  // Locks memory that is never freed.
  using Lock = std::function<Result<std::byte*>(size_t size)>;

  explicit HostArena(Lock lock) : lock_(std::move(lock)) {}

  // A piece, at the beginning of a page. Error: of the lock, if more is needed.
  Result<std::byte*> take(size_t size);
  void give_back(std::byte* piece);

  size_t locked_bytes() const { return locked_bytes_; }

 private:
  struct Piece {
    const std::byte* slab = nullptr;  // one lock; pieces of two do not join
    size_t size = 0;
  };
  using Pieces = std::map<std::byte*, Piece>;

  // The smallest free piece that is large enough, or the end.
  Pieces::iterator find(size_t size);
  Result<Pieces::iterator> lock_slab(size_t size);

  const Lock lock_;
  Pieces free_, taken_;
  size_t locked_bytes_ = 0;
};

}  // namespace smd::gpu
